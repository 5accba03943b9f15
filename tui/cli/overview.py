"""What `milepost --help` teaches beside the options of the screen."""

from __future__ import annotations

from collections.abc import Mapping

OVERVIEW = """\
Watch a long Miles run from a terminal: is it moving, is the box well, are the engines
alive, and what would a crash cost now. Save it, stop it, and start it again, proven.

  milepost                      watch the one run on this machine, or choose one
  milepost runs                 what runs here, and how it was found
  milepost --log runs/plain.log --checkpoints /data/ckpt/run-a
  milepost demo --fault stall@3 a simulated run, no GPU, Docker or Miles needed
  milepost status --json        one reading, for scripts
  milepost resume --dry-run     what a kill and resume would do now
  milepost guard --act resume   let it be done while nobody looks
"""
COMMANDS: Mapping[str, Mapping[str, str]] = {
    "look": {
        "(none)": "open the screen",
        "status": "one reading",
        "runs": "what runs on this machine",
        "checkpoints": "what a save folder holds, and what a restart would load",
        "verify": "read every byte of a checkpoint",
        "explain": "say what a finished or copied log tells, or what a lost run's record does",
    },
    "act": {
        "save": "save now, without waiting for the interval",
        "stop": "save where the run can, then end it whole",
        "resume": "start it again from its newest good checkpoint, killing first what lives of it",
        "rollback": "make an older checkpoint what a resume loads, or undo that",
        "convert": "a checkpoint into a Hugging Face folder, and prove it",
        "autopsy": "write down what a hung run is at",
        "actions": "what was done; finish or give up what was interrupted",
        "run": "start a command in our care",
    },
    "while nobody looks": {
        "guard": "watch: tell, record, and within a policy act",
    },
    "try": {
        "demo": "watch a simulated run",
    },
}
"""What a person wants, and the commands for it."""
EXIT_CODES = """\
exit codes: 0 well, 1 milepost failed, 2 usage, 3 degraded, 4 stalled, 5 ended badly,
6 nothing found, 7 cannot tell, 8 refused
"""
_MOUSE = """\
After a lost SSH session a terminal may print mouse codes; this quiets it:
  printf '\\e[?1000l\\e[?1002l\\e[?1003l\\e[?1006l\\e[?1049l'
"""


def epilog() -> str:
    """Every command in a line, then exit codes."""
    parts = []
    for want, commands in COMMANDS.items():
        lines = (f"  {name:12} {text}" for name, text in commands.items())
        parts.append("\n".join((f"{want}:", *lines)))
    parts.append("`milepost COMMAND --help` tells more.\n")
    return "\n\n".join((*parts, EXIT_CODES, _MOUSE))
