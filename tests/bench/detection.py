"""How soon a guard tells of each fault of the demo, what it does about it, and what comes of that.

Usage: PYTHONPATH=tests python tests/bench/detection.py [--in container] [--speed S] [--runs N]
       [--at-once N] [FAULT…]

Each trial is a simulated run, and a guard in a process of its own. The fault's own moment is seen
by a look every 20 ms: a process that is gone, a line in the log, a number in a file. At speed 1,
the real one, rollouts take about a minute and the limits are the usual ones. A run in a container
is one of `docker run --rm`, on an engine of its own; that needs root and dockerd.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import psutil
from bench.detection_runs import FAULT, Subject, bare, contained, docker, engine

from tui.actions.desk import Desk
from tui.actions.started import end_started
from tui.cli.commands import demo_config
from tui.config import Config
from tui.guard.decision import Policy, Terms
from tui.guard.loop import run_guard
from tui.guard.notice import Notice
from tui.guard.presence import Presence
from tui.model.memory import GIB
from tui.model.plan import ActionPlan, Ask, Refusal, StartRun, Step
from tui.model.snapshot import Snapshot
from tui.monitor import Monitor
from tui.watch import monitor_of

_LOOK_S = 0.02
_AFTER_S = 45.0
"""How long an outcome is waited for once everything else was seen."""
Struck = Callable[[Subject], bool]


@dataclass(frozen=True)
class Fault:
    """What strikes, how its moment is seen, and what should be told."""

    struck: Struck
    codes: tuple[str, ...]
    policy: Policy = Policy.NONE
    demo: str = ""
    """Of the demo, by name; empty: it is made from outside."""
    make: Callable[[Subject], None] | None = None
    target: str = ""
    deadline_s: float = 240.0


def logged(words: str) -> Struck:
    return lambda run: words in run.text()


def gone(run: Subject) -> bool:
    return run.is_gone()


def engine_gone(run: Subject) -> bool:
    return not any("tui.demo.engine" in each.cmdline() for each in run.children())


def low(gib: float) -> Struck:
    def struck(run: Subject) -> bool:
        found = re.search(r"MemAvailable: +(\d+) kB", run.meminfo.read_text())
        return found is not None and int(found[1]) * 1024 < gib * GIB

    return struck


def hung(run: Subject) -> bool:
    """The simulated GPU has fallen idle, as it only does where something hangs."""
    return '"sm_clock_mhz": 208' in run.gpu.read_text() and "perf 0" in run.text()


def kill_driver(run: Subject) -> None:
    os.kill(run.pid, signal.SIGKILL)


def kill_engine(run: Subject) -> None:
    for child in run.children():
        if "tui.demo.engine" in child.cmdline():
            child.kill()


FAULTS: dict[str, Fault] = {
    "driver killed": Fault(
        gone, ("run-crashed", "run-failed"), Policy.RESUME, make=kill_driver, target="5 s"
    ),
    "trainer dies": Fault(
        logged("ActorDiedError"), ("run-failed",), Policy.RESUME, "trainer-dies", target="5 s"
    ),
    "engine killed": Fault(engine_gone, ("engine-dead",), make=kill_engine, target="10 s"),
    "engine hangs": Fault(
        hung, ("engine-suspect",), Policy.RESUME, "engine-hangs", target="60 s or 3 usual gaps"
    ),
    "memory floor": Fault(
        low(8.0), ("memory-floor",), Policy.STOP_ON_MEMORY_FLOOR, "memory-floor", target="1 s"
    ),
    "fresh start": Fault(
        logged("Rollout generation"), ("silent-fresh-start",), demo="fresh-start",
        target="before its first save",
    ),
    "stall": Fault(
        hung, ("stalled",), Policy.RESUME, "stall", target="3 x p95, at least 2 min",
    ),
    "nan": Fault(logged("'train/grad_norm': nan"), ("non-finite",), demo="nan", target="-"),
    "disk full": Fault(
        logged("No space left on device"), ("run-failed",), Policy.RESUME, "disk-full",
        target="5 s",
    ),
    "killed in a save": Fault(
        gone, ("run-crashed", "run-failed"), Policy.RESUME, "save-killed-3", target="5 s"
    ),
}  # fmt: skip
IN_CONTAINER: dict[str, Fault] = {
    "docker stop by a person": Fault(
        gone, ("run-failed", "run-crashed", "guard-holds"), Policy.RESUME,
        make=docker("stop", "--time=1"), target="3 s, not resumed",
    ),
    "docker rm -f by a person": Fault(
        gone, ("run-failed", "run-crashed", "guard-holds"), Policy.RESUME,
        make=docker("rm", "--force"), target="3 s, not resumed",
    ),
}  # fmt: skip
ALL = FAULTS | IN_CONTAINER


@dataclass
class Trial:
    """One run with one fault, as it went."""

    fault: str
    detected_s: float | None = None
    message: str = ""
    acted_s: float | None = None
    action: str = ""
    ended_s: float | None = None
    outcome: str = ""
    before_first_save: bool | None = None
    notices: list[str] = field(default_factory=list)


class Watcher:
    """The guard's company; everything that is told, with when."""

    def __init__(self) -> None:
        self.told: list[tuple[float, Notice]] = []

    def tell(self, notice: Notice) -> None:
        self.told.append((time.monotonic(), notice))

    def first(self, codes: Sequence[str], since: float = 0.0) -> tuple[float, Notice] | None:
        return next(
            ((at, each) for at, each in self.told if each.code in codes and at >= since), None
        )

    def record(self, snapshot: Snapshot) -> None: ...

    def export(self, snapshot: Snapshot) -> None: ...


class Mended(Desk):
    """Starts the run again without its fault, which would strike in the same rollout."""

    def plan(self, ask: Ask) -> ActionPlan | Refusal:
        plan = super().plan(ask)
        if isinstance(plan, Refusal):
            return plan
        return replace(plan, steps=tuple(map(_mended, plan.steps)))


def _mended(step: Step) -> Step:
    if not isinstance(step, StartRun):
        return step
    argv = tuple(word for word in step.recipe.argv if not word.startswith(FAULT))
    if "--fault" in argv:
        at = argv.index("--fault")
        argv = (*argv[:at], *argv[at + 2 :])
    return replace(step, recipe=replace(step.recipe, argv=argv))


def trial(name: str, speed: float, folder: Path, rollout: int, *, in_container: bool) -> Trial:
    """Run it, in this process."""
    fault, watcher, stop = ALL[name], Watcher(), threading.Event()
    opened = contained if in_container else bare
    with opened(folder, speed, f"{fault.demo}@{rollout}" if fault.demo else "") as run:
        config = demo_config(Config(), speed)
        monitor = monitor_of(run.attachment, config, at=time.time(), demo_folder=run.folder)
        guard = threading.Thread(
            target=lambda: run_guard(
                monitor, Terms(policy=fault.policy),
                desk=Mended(lambda: monitor.latest, read_only=False),
                teller=watcher, keeper=watcher, shower=watcher,
                presence=Presence(fault.policy.value, time.time(), lambda: ()), stop=stop,
            )
        )  # fmt: skip
        guard.start()
        try:
            return _seen(Trial(name), fault, run, watcher, monitor, speed, rollout)
        finally:
            stop.set()
            guard.join(20.0)
            with suppress(OSError):
                end_started(monitor.latest.actions, 5.0)


def _seen(
    seen: Trial,
    fault: Fault,
    run: Subject,
    watcher: Watcher,
    monitor: Monitor,
    speed: float,
    rollout: int,
) -> Trial:
    if fault.make is not None:
        _until(lambda: monitor.latest.story.rollouts_done >= rollout, 120.0 * (rollout + 2) / speed)
        time.sleep(min(20.0, 20.0 / speed))  # somewhere in the middle of a phase
        fault.make(run)
    _until(lambda: fault.struck(run), 200.0 * (rollout + 2) / speed)
    struck_at = time.monotonic()
    if _until(lambda: watcher.first(fault.codes) is not None, fault.deadline_s):
        found = watcher.first(fault.codes)
        assert found is not None
        seen.detected_s, seen.message = found[0] - struck_at, found[1].line
        seen.before_first_save = "Saved checkpoint" not in run.text()
    if fault.policy is not Policy.NONE:
        _acted(seen, watcher, struck_at, speed)
    seen.notices = [f"{at - struck_at:.1f} {each.code}: {each.line}" for at, each in watcher.told]
    return seen


def _acted(seen: Trial, watcher: Watcher, struck_at: float, speed: float) -> None:
    _until(lambda: watcher.first(("guard-acts", "guard-holds"), struck_at) is not None, 150.0)
    acts = watcher.first(("guard-acts", "guard-holds"), struck_at)
    if acts is None:
        return
    seen.acted_s, seen.action = acts[0] - struck_at, acts[1].line
    if acts[1].code == "guard-holds":
        return
    _until(lambda: watcher.first(("guard-outcome",)) is not None, _AFTER_S + 120.0 / speed)
    outcome = watcher.first(("guard-outcome",))
    if outcome is not None:
        seen.ended_s, seen.outcome = outcome[0] - struck_at, outcome[1].line


def _until(condition: Callable[[], bool], deadline_s: float) -> bool:
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        with suppress(OSError, psutil.Error):
            if condition():
                return True
        time.sleep(_LOOK_S)
    return False


class Apart:
    """Trials in processes of their own, each with a state folder of its own."""

    def __init__(self, speed: float, rollout: int, *, in_container: bool) -> None:
        self._options: tuple[str, ...] = ("--speed", f"{speed:g}", "--rollout", str(rollout))
        self._in_container = in_container
        self._stack = ExitStack()

    def __enter__(self) -> Apart:
        self._words: Callable[..., Sequence[str]] = lambda *words: words
        self._environment = dict(os.environ)
        if self._in_container:
            box, needed = self._stack.enter_context(engine())
            self._words, self._options = box.box.words, (*self._options, "--in", "container")
            self._environment |= needed
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def trial(self, name: str) -> Trial:
        """What came of it, or the last words of why there is nothing."""
        with tempfile.TemporaryDirectory(prefix="detection-", ignore_cleanup_errors=True) as folder:
            done = subprocess.run(
                self._words(sys.executable, __file__, "--one", name, *self._options),
                env={
                    **self._environment,
                    "XDG_STATE_HOME": f"{folder}/state",
                    "HOME": folder,
                    "PYTHONPATH": str(Path(__file__).parents[1]),
                    "DETECTION": folder,
                },
                capture_output=True,
                text=True,
                check=False,
            )
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            return Trial(name, message=done.stderr.strip()[-200:])
        return Trial(**json.loads(lines[-1]))


def _table(trials: Sequence[Trial]) -> str:
    rows = [
        "| fault | target | told after: median, worst | acts after | done after | n |",
        "|---|---|---|---|---|---|",
    ]
    for name, fault in ALL.items():
        of_it = [each for each in trials if each.fault == name]
        if not of_it:
            continue
        rows.append(
            f"| {name} | {fault.target} | {_told([each.detected_s for each in of_it])} | "
            f"{_told([each.acted_s for each in of_it])} | "
            f"{_told([each.ended_s for each in of_it])} | {len(of_it)} |"
        )
    rows += ["", "| fault | message | action | outcome |", "|---|---|---|---|"]
    for name in ALL:
        first = next((each for each in trials if each.fault == name), None)
        if first is not None:
            rows.append(f"| {name} | {first.message} | {first.action} | {first.outcome} |")
    return "\n".join(rows)


def _told(seconds: Sequence[float | None]) -> str:
    known = [each for each in seconds if each is not None]
    if not known:
        return "-"
    missed = f", {len(seconds) - len(known)} not" if len(known) < len(seconds) else ""
    return f"{statistics.median(known):.1f} s, {max(known):.1f} s{missed}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", nargs="*", choices=[*ALL, []], metavar="FAULT")
    parser.add_argument("--in", dest="place", choices=["process", "container"], default="process")
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--rollout", type=int, default=2)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    in_container = given.place == "container"
    if given.one:
        folder = Path(os.environ["DETECTION"])
        told = trial(given.one, given.speed, folder, given.rollout, in_container=in_container)
        print(json.dumps(asdict(told)))
        return
    names = given.faults or list(ALL if in_container else FAULTS)
    trials = []
    with (
        Apart(given.speed, given.rollout, in_container=in_container) as apart,
        ThreadPoolExecutor(given.at_once) as pool,
    ):
        for each in pool.map(apart.trial, names * given.runs):
            trials.append(each)
            print(json.dumps(asdict(each)), file=sys.stderr, flush=True)
    print(_table(trials))


if __name__ == "__main__":
    main()
