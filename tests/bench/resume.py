"""What a kill and resume by milepost costs beside a script that does it by hand, taking turns.

Usage: PYTHONPATH=tests python tests/bench/resume.py [ROUNDS]   (default 5)

The script does no more than has to be: SIGTERM, wait for the driver's end, the same command into a
new log, and `grep` until it shows what was loaded and the first rollout. Both are timed from their
start to the proof. For milepost also the parts, as its journal tells them. Compiled, as it is installed.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from acting import ActedOn, acted_on

BY_HAND = r"""
kill -TERM "$PID"
while kill -0 "$PID" 2> /dev/null; do sleep 0.1; done
FIRST=$(cat "$SAVE/latest_checkpointed_iteration.txt")
LOG=$(mktemp "$LOGS/by-hand-XXXX.log")
setsid nohup "$@" > "$LOG" 2>&1 < /dev/null &
until grep -q 'Loaded model from' "$LOG" && grep -q 'Loaded optimizer from' "$LOG" &&
      grep -qE "(eval|perf|rollout) $FIRST: \{" "$LOG"; do sleep 0.1; done
"""


def by_hand(acted: ActedOn) -> float:
    """Seconds that the script takes."""
    (driver,) = acted.drivers()
    environment = {
        **driver.environ(),
        "PID": str(driver.pid),
        "SAVE": str(acted.run.checkpoints),
        "LOGS": str(acted.run.log.parent),
    }
    begin = time.monotonic()
    words = ["bash", "-c", BY_HAND, "bash", *driver.cmdline()]
    with subprocess.Popen(words, env=environment) as script:
        while script.poll() is None:
            acted.run.process.poll()  # a child of ours, which init would reap otherwise
            time.sleep(0.01)
    assert script.returncode == 0
    return time.monotonic() - begin


def by_milepost(acted: ActedOn) -> tuple[float, dict[str, float]]:
    """Seconds that the command takes, and its parts."""
    (driver,) = acted.drivers()
    begin, began_at = time.monotonic(), time.time()
    record = acted.outcome("resume", "--no-save-first", str(driver.pid))
    spent = time.monotonic() - begin
    assert record["state"] == "done", record
    (journal,) = acted.state.rglob("journal.jsonl")
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    own = [entry for entry in entries if entry["action"] == record["id"]]
    return spent, {**_parts(own, began_at), "end": began_at + spent - own[-1]["at"]}


def _parts(entries: list[dict[str, Any]], began_at: float) -> dict[str, float]:
    """From mark to mark."""
    ends = {entry["step"]: entry["at"] for entry in entries if entry["mark"] == "step done"}
    started = entries[0]["at"]
    free = next(entry["at"] for entry in entries if "waiting until memory" in entry["line"])
    return {
        "planning": started - began_at,
        "stop": free - started,
        "free": ends[0] - free,
        "start": ends[1] - ends[0],
        "proof": ends[2] - ends[1],
    }


def main(rounds: int) -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    hand, tool, parts = [], [], []
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        acted_on(Path(folder), save_interval=2, num_rollout=100000, leash=False) as acted,
    ):
        acted.wait_for_checkpoint(2)
        for _ in range(rounds):
            hand.append(by_hand(acted))
            spent, told = by_milepost(acted)
            tool.append(spent)
            parts.append(told)
            print(f"by hand {hand[-1]:5.2f} s   milepost {tool[-1]:5.2f} s", flush=True)
    shares = "  ".join(
        f"{name} {statistics.median(each[name] for each in parts):.2f}" for name in parts[0]
    )
    added = statistics.median(tool) - statistics.median(hand)
    print(
        f"medians: by hand {statistics.median(hand):.2f} s, milepost {statistics.median(tool):.2f} s"
    )
    print(f"added: {added:.2f} s   of it, in seconds: {shares}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
