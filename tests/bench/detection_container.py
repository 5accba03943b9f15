"""The same for a run in a container: `milepost guard` beside a Docker engine of its own.

Usage: PYTHONPATH=tests python tests/bench/detection_container.py [--speed S] [--runs N]

Needs root and dockerd. Times are from the fault to the line in the run's journal.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from docker_box import DockerBox, opened_engine

from tui.model.journal import Remark, remark_of

_OUTCOME_S = 60.0
Strike = Callable[[DockerBox, str], None]


def kill_its_driver(_: DockerBox, mark: str) -> None:
    """As the kernel does: its first process, by a signal from outside."""
    _driver(mark).kill()


def stop(box: DockerBox, _: str) -> None:
    box.docker("stop", "--time=1", "run-a")


def remove(box: DockerBox, _: str) -> None:
    box.docker("rm", "--force", "run-a")


FAULTS: dict[str, tuple[Strike | None, str, str]] = {
    "container killed": (kill_its_driver, "", "3 s"),
    "docker stop by a person": (stop, "", "3 s, and not resumed"),
    "docker rm -f by a person": (remove, "", "3 s, and not resumed"),
    "trainer dies": (None, "trainer-dies@2", "5 s"),
}


def _driver(mark: str) -> psutil.Process:
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            if mark in words and words[1:3] == ["-m", "tui.demo"]:
                return process
    raise LookupError(f"no driver is marked {mark}")


@contextmanager
def _guarded(box: DockerBox, folder: Path, mark: str, fault: str, speed: float) -> Iterator[Path]:
    """A run in a container, and a guard of it; the folder of the guard's state."""
    for name in ("runs", "ckpt"):
        (folder / name).mkdir()
    words = box.run_words("--rm", "--name=run-a", f"--volume={folder}/ckpt:/ckpt")
    demo = (
        *(sys.executable, "-m", "tui.demo", "--dir", f"/tmp/{mark}", "--speed", f"{speed:g}"),
        *("--save", "/ckpt/run-a", "--load", "/ckpt/run-a", "--save-interval", "1"),
        *("--num-rollout", "1000", "--hf-checkpoint", mark),
        *(("--fault", fault) if fault else ()),
    )
    with (folder / "runs" / "plain.log").open("wb") as log:
        client = box.box.start(
            "docker", *words, *demo, stdout=log, stderr=subprocess.STDOUT, cwd=folder
        )
    _until(lambda: "tracker" if any((folder / "ckpt").glob("*/latest*")) else "", 400.0 / speed)
    guard = box.box.start(
        "env", f"XDG_STATE_HOME={folder}/state", f"HOME={folder}",
        sys.executable, "-m", "tui", "guard", "run-a", "--act", "resume",
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield folder / "state"
    finally:
        guard.terminate()
        guard.wait(30)
        box.remove_all()
        client.wait(60)


def _remarks(state: Path) -> list[Remark]:
    lines = "".join(file.read_text() for file in state.rglob("journal.jsonl")).split("\n")
    return [remark for line in lines if (remark := remark_of(line)) is not None]


def _until(found: Callable[[], str], deadline_s: float) -> str:
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        if told := found():
            return told
        time.sleep(0.05)
    return ""


def _first(state: Path, codes: Sequence[str], since: float) -> Remark | None:
    return next((each for each in _remarks(state) if each.code in codes and each.at >= since), None)


def trial(box: DockerBox, name: str, speed: float) -> dict[str, object]:
    strike, fault, _ = FAULTS[name]
    mark = f"mark-{time.monotonic_ns()}"
    with (
        tempfile.TemporaryDirectory(prefix="detection-") as folder,
        _guarded(box, Path(folder), mark, fault, speed) as state,
    ):
        _until(lambda: "seen" if _first(state, ("guard-watches",), 0.0) else "", 60.0)
        if strike is None:
            log = Path(folder, "runs", "plain.log")
            _until(lambda: "struck" if "ActorDied" in log.read_text() else "", 400.0 / speed)
        else:
            time.sleep(5.0)
        struck_at = time.time()
        if strike is not None:
            strike(box, mark)
        return _seen(state, name, struck_at)


def _seen(state: Path, name: str, struck_at: float) -> dict[str, object]:
    row: dict[str, object] = {"fault": name}
    for key, codes in (
        ("told", ("run-failed", "run-crashed")),
        ("acted", ("guard-acts", "guard-holds")),
        ("ended", ("guard-outcome",)),
    ):
        _until(lambda codes=codes: "it" if _first(state, codes, struck_at - 1) else "", _OUTCOME_S)  # type: ignore[misc]
        found = _first(state, codes, struck_at - 1)
        if found is None:
            break
        row[f"{key}_s"], row[key] = round(found.at - struck_at, 1), found.line
        if found.code == "guard-holds":
            break
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with opened_engine() as box:
        for name in list(FAULTS) * given.runs:
            print(json.dumps(trial(box, name, given.speed)), flush=True)


if __name__ == "__main__":
    main()
