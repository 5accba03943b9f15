"""What each command does."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui.attach import Finding, Target, all_runs, attached, found, has_target
from tui.cli.chosen import target_of
from tui.config import Config, checked_interval_s, load_config
from tui.demo import faults
from tui.demo.launch import DemoRun, start
from tui.errors import ExitCode, NothingFoundError, UsageError
from tui.model.codec import encoded
from tui.model.document import exit_code_of, runs_document, status_document
from tui.model.launch import Attachment, Found
from tui.model.snapshot import Snapshot
from tui.model.text import harmless
from tui.runs.state_dir import run_folder
from tui.watch import glanced, monitor_of

if TYPE_CHECKING:
    from tui.app.options import ScreenOptions
    from tui.app.source import ActionDesk
    from tui.cli.arguments import Arguments
    from tui.monitor import Monitor

STATUS_DEADLINE_S = 8.0
DEMO_SPEED, DEMO_SEED = 10.0, 7
_DEMO_FLOOR_S = 12.0
"""Engines are asked for their metrics every ten seconds, folders every five, at any speed."""
_DEMO_GRACE_S = 2.0
SPEED_LIMITS = (0.01, 10_000.0)


def watch(arguments: Arguments) -> int:
    """Open the screen."""
    config = _config(arguments)
    target = target_of(arguments)
    return _screen(found(target, at=time.time(), past=True), config, target)


def demo(arguments: Arguments) -> int:
    """Start the simulated run, and watch it unless told not to."""
    low, high = SPEED_LIMITS
    if not low <= arguments.speed <= high:
        raise UsageError(f"--speed {arguments.speed:g} is not between {low:g} and {high:g}")
    config = _config(arguments)
    run = _started(arguments)
    try:
        if arguments.headless:
            return _headless(run)
        return _demo_screen(run, demo_config(config, arguments.speed))
    finally:
        run.stop()


def status(arguments: Arguments) -> int:
    """Read once, print, and tell the shell."""
    config = _config(arguments)
    attachment = attached(target_of(arguments), at=time.time())
    if not has_target(attachment):
        hint = "or name the log: milepost status --log FILE --checkpoints DIR"
        raise NothingFoundError("no Miles run was found", "\n".join((*attachment.notes, hint)))
    monitor = monitor_of(attachment, config, at=time.time())
    return _told(monitor.once(deadline_s=STATUS_DEADLINE_S), as_json=arguments.json)


def runs(arguments: Arguments) -> int:
    """List what runs here."""
    config = _config(arguments)
    now = time.time()
    listed, notes = all_runs(now)
    with ThreadPoolExecutor(max_workers=max(1, len(listed))) as pool:
        seen = tuple(pool.map(lambda run: glanced(run, config, at=now), listed))
    if arguments.json:
        _print_json(runs_document(seen, notes))
    else:
        from tui.cli.printing import print_runs

        print_runs(seen, notes)
    return int(ExitCode.WELL if listed else ExitCode.NOTHING_FOUND)


def explain(arguments: Arguments) -> int:
    """Say what a log tells."""
    from tui.cli.printing import ProgressLine
    from tui.explain import explained

    if (arguments.log is None) == (arguments.run is None):
        raise UsageError("what is to be explained?", "a LOG, or --run for the record of a run")
    if arguments.log is None:
        return _losses(arguments)
    with ProgressLine("reading") as report:
        snapshot = explained(
            arguments.log,
            checkpoints=arguments.checkpoints,
            as_of=arguments.as_of,
            report=report,
        )
    return _told(snapshot, as_json=arguments.json)


def _losses(arguments: Arguments) -> int:
    """What the record of a run tells."""
    from tui.cli.printing import print_losses
    from tui.guard.recall import losses

    target = Target(name=arguments.run or None, checkpoints=arguments.checkpoints)
    finding = found(target, at=time.time(), past=True)
    attachment = finding.attachment if not finding.choices else finding.choices[0].attachment
    if not has_target(attachment):
        raise NothingFoundError("no Miles run was found", "`milepost explain LOG` reads a log")
    lost = losses(run_folder(attachment))
    if arguments.json:
        _print_json({"milepost": 1, "losses": [encoded(loss) for loss in lost]})
    else:
        print_losses(lost, attachment.name)
    return int(ExitCode.ENDED_BADLY if lost else ExitCode.WELL)


def demo_epilog() -> str:
    """The faults, for `milepost demo --help`."""
    lines = [f"  {name:<16} {description}" for name, description in faults.FAULTS.items()]
    return "faults:\n" + "\n".join(lines)


def _screen(finding: Finding, config: Config, target: Target) -> int:
    from tui.app.leaving import Leaving
    from tui.app.run import run_app
    from tui.guard.recall import RecallProbe
    from tui.guard.recorded import RecordedMonitor

    monitor = monitor_of(
        finding.attachment,
        config,
        at=time.time(),
        target=target,
        choices=finding.choices,
        extra=(RecallProbe(),),
    )
    source = RecordedMonitor(monitor)
    code = run_app(source, _screen_options(config), _desk(monitor, config))
    if code != Leaving.DEMO_REQUESTED:
        return code
    run = start(_new_folder(), speed=DEMO_SPEED, seed=DEMO_SEED, faults=())
    try:
        return _demo_screen(run, demo_config(config, DEMO_SPEED))
    finally:
        run.stop()


def _demo_screen(run: DemoRun, config: Config) -> int:
    from tui.app.run import run_app

    monitor = monitor_of(demo_attachment(run), config, at=time.time(), demo_folder=run.directory)
    try:
        return run_app(monitor, _screen_options(config), _desk(monitor, config))
    finally:
        if monitor.latest.actions:
            from tui.actions.started import end_started

            end_started(monitor.latest.actions, _DEMO_GRACE_S)


def _desk(monitor: Monitor, config: Config) -> ActionDesk:
    from tui.actions.desk import Desk

    return Desk(lambda: monitor.latest, read_only=config.read_only)


def demo_config(config: Config, speed: float) -> Config:
    """In the demo time runs faster, and so do the limits: a stall shows after seconds."""
    if speed <= 1.0:
        return config
    limits = replace(
        config.limits,
        stall_floor_s=max(_DEMO_FLOOR_S, config.limits.stall_floor_s / speed),
        engine_silent_s=max(_DEMO_FLOOR_S, config.limits.engine_silent_s / speed),
        work_at_risk_s=max(_DEMO_FLOOR_S, config.limits.work_at_risk_s / speed),
    )
    return replace(config, limits=limits)


def _screen_options(config: Config) -> ScreenOptions:
    from tui.app.options import ScreenOptions

    return ScreenOptions(
        theme=config.theme,
        theme_folder=config.theme_folder,
        ascii=config.ascii,
        mouse=config.mouse,
        read_only=config.read_only,
        keys=config.keys,
    )


def _started(arguments: Arguments) -> DemoRun:
    try:
        faults.parsed(arguments.fault)
    except ValueError as fault:
        raise UsageError(str(fault), "`milepost demo --help` lists the faults") from fault
    return start(
        arguments.dir or _new_folder(),
        speed=arguments.speed,
        seed=arguments.seed,
        faults=tuple(arguments.fault),
    )


def _new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="milepost-demo-"))


def demo_attachment(run: DemoRun) -> Attachment:
    """What there is to watch of a simulated run."""
    return Attachment(
        name="demo",
        demo=True,
        log=Found(value=str(run.log), source="the demo"),
        checkpoints=Found(value=str(run.checkpoints), source="the demo"),
        driver_pid=Found(value=str(run.pid), source="the demo"),
    )


def _headless(run: DemoRun) -> int:
    """Say where it is, and stay until it ends or is interrupted."""
    lines = (
        f"log          {run.log}",
        f"checkpoints  {run.checkpoints}",
        f"save trigger {run.save_trigger}",
        f"pid          {run.pid}",
        f"watch it: milepost --log {run.log} --checkpoints {run.checkpoints}",
    )
    print("\n".join(map(harmless, lines)), flush=True)
    return run.process.wait()


def _told(snapshot: Snapshot, *, as_json: bool) -> int:
    if as_json:
        _print_json(status_document(snapshot))
    else:
        from tui.cli.printing import print_report

        print_report(snapshot)
    return exit_code_of(snapshot)


def _print_json(document: Mapping[str, object]) -> None:
    json.dump(document, sys.stdout, ensure_ascii=True, allow_nan=False)
    sys.stdout.write("\n")


def _config(arguments: Arguments) -> Config:
    config = load_config(arguments.config)
    changes: dict[str, object] = {}
    if getattr(arguments, "theme", None):
        changes["theme"] = arguments.theme
    if getattr(arguments, "interval", None) is not None:
        changes["interval_s"] = checked_interval_s(float(arguments.interval or 0), "--interval")
    for name, is_set in (
        ("ascii", getattr(arguments, "ascii", False)),
        ("read_only", getattr(arguments, "read_only", False)),
    ):
        if is_set:
            changes[name] = True
    if getattr(arguments, "no_mouse", False):
        changes["mouse"] = False
    return replace(config, **changes)  # type: ignore[arg-type]  # names and types as in Config
