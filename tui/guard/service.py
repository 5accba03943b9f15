"""A guard as a systemd user unit, and without systemd.

What a guard starts lives on in the unit's control group: neither its end nor a process that is
killed for memory there may take the run with it.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tui.errors import MilepostError

_ENVIRONMENT = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "DOCKER_HOST")
"""What a shell may set and a user's systemd does not know."""
_PLAIN = re.compile(r"[\w@/:.,+=-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The guard of one run."""

    run: str
    """Its id: the same for every start that saves to the same folder, and after a reboot."""
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"milepost-guard-{self.run}.service"

    @property
    def command(self) -> tuple[str, ...]:
        return (*milepost(), "guard", self.run, *self.options)

    @property
    def file(self) -> Path:
        return units_folder() / self.name

    def unit(self) -> str:
        """The text of the unit."""
        environment = "".join(
            f"Environment={_quoted(f'{name}={os.environ[name]}'.replace('%', '%%'))}\n"
            for name in _ENVIRONMENT
            if os.environ.get(name)
        )
        return _UNIT.format(
            run=self.run.replace("%", "%%"),
            environment=environment,
            command=" ".join(
                _quoted(word.replace("%", "%%").replace("$", "$$")) for word in self.command
            ),
        )

    def install(self) -> bool:
        """Write the unit; False: it was there as it is.

        Raises:
            MilepostError: it cannot be written.
        """
        text = self.unit()
        try:
            if self.file.is_file() and self.file.read_text(encoding="utf-8") == text:
                return False
            self.file.parent.mkdir(parents=True, exist_ok=True)
            draft = self.file.with_name(f".{self.name}.{os.getpid()}")
            draft.write_text(text, encoding="utf-8")
            draft.replace(self.file)
        except OSError as fault:
            raise MilepostError(f"{self.file}: {fault.strerror or fault}") from fault
        return True

    def uninstall(self) -> bool:
        """Remove the unit, and what has it started with the box; False: there was none.

        Raises:
            MilepostError: it cannot be removed.
        """
        wanted = units_folder() / "default.target.wants" / self.name
        there = [file for file in (wanted, self.file) if os.path.lexists(file)]
        try:
            for file in there:
                file.unlink()
        except OSError as fault:
            raise MilepostError(f"{self.file}: {fault.strerror or fault}") from fault
        return bool(there)

    def next_steps(self) -> Iterator[str]:
        """What a person has to run after an install, and why."""
        yield "systemctl --user daemon-reload"
        yield f"systemctl --user enable --now {self.name}"
        yield "loginctl enable-linger    # without it your services end at logout, and do not"
        yield "                          # start with the box; the runs they started end too"
        yield f"systemctl --user status {self.name}    # how it is; its log: milepost status"

    def without_systemd(self) -> Iterator[str]:
        """The same in tmux, detached, and with the box."""
        command = shlex.join(self.command)
        yield f"tmux new-session -d -s guard-{self.run.replace('.', '-')} {shlex.quote(command)}"
        yield f"setsid nohup {command} </dev/null >/dev/null 2>&1 &"
        yield f"@reboot {command}    # a line for `crontab -e`"


def milepost() -> tuple[str, ...]:
    """Ourselves as a command, whatever folder it is called in."""
    return (sys.executable, "-P", "-m", "tui")


def units_folder() -> Path:
    """Where a user's units are."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "systemd" / "user"


def _quoted(word: str) -> str:
    """A word as a unit's file has it."""
    if _PLAIN.fullmatch(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_UNIT = """\
[Unit]
Description=milepost guard of {run}
StartLimitIntervalSec=0

[Service]
{environment}ExecStart={command}
# Whatever ends it, it comes back, and the longer the later; but not once the run is over.
Restart=always
RestartPreventExitStatus=0
SuccessExitStatus=129 130 143
RestartSec=5
RestartSteps=6
RestartMaxDelaySec=300
# What it has started goes on without it.
KillMode=process
OOMPolicy=continue

[Install]
WantedBy=default.target
"""
