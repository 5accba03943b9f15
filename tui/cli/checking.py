"""`milepost checkpoints` and `milepost verify`: what lies on disk, and what it is worth."""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui.attach import Target, attached
from tui.checkpoints.verify import VerifyResult, verify
from tui.errors import ExitCode, NothingFoundError, UsageError
from tui.model.checkpoint import CheckpointTree, Soundness
from tui.model.document import checkpoints_document
from tui.model.events import Attached, ContainerRead, TimePassed
from tui.model.launch import Attachment, Found
from tui.model.reading import Known
from tui.model.reduce import reduce, reduced
from tui.model.snapshot import Loads, Snapshot
from tui.probes.checkpoints import CheckpointsProbe
from tui.probes.container import ContainerProbe
from tui.probes.memory import DiskProbe

if TYPE_CHECKING:
    from tui.cli.arguments import Arguments


def checkpoints(arguments: Arguments) -> int:
    """List a save folder: what is whole, what a restart would load, what the disk still takes."""
    snapshot = _scanned(arguments.folder)
    tree = snapshot.checkpoints
    if not isinstance(tree, Known):
        raise NothingFoundError(tree.reason, "name the folder: milepost checkpoints DIR")
    if arguments.json:
        json.dump(checkpoints_document(snapshot), sys.stdout, allow_nan=False)
        sys.stdout.write("\n")
    else:
        from tui.cli.printing import print_checkpoints

        print_checkpoints(snapshot)
    return int(_listed_code(snapshot))


def check(arguments: Arguments) -> int:
    """Verify what was named; the exit code is that of the worst result."""
    cancel = threading.Event()
    results = []
    for path in _paths(arguments):
        results.append(_verified(path, arguments, cancel))
        if cancel.is_set():
            break
    if arguments.json:
        told = [asdict(result) for result in results]
        json.dump({"milepost": 1, "results": told}, sys.stdout, allow_nan=False)
        sys.stdout.write("\n")
    return int(max((_code(result) for result in results), key=_GRAVITY.index))


_GRAVITY = (ExitCode.WELL, ExitCode.UNKNOWN, ExitCode.DEGRADED, ExitCode.ENDED_BADLY)


def _code(result: VerifyResult) -> ExitCode:
    if result.faults or result.incomplete:
        return ExitCode.ENDED_BADLY
    if result.verification and result.verification.soundness is Soundness.NOT_FINITE:
        return ExitCode.DEGRADED
    return ExitCode.WELL if result.is_good else ExitCode.UNKNOWN


def _verified(path: Path, arguments: Arguments, cancel: threading.Event) -> VerifyResult:
    from tui.cli.printing import ProgressLine, print_verified

    with ProgressLine(path.name) as progress:

        def report(done: int, total: int) -> None:
            progress(done / total if total else 1.0)

        try:
            result = verify(path, shallow=arguments.shallow, report=report, cancel=cancel)
        except KeyboardInterrupt:
            cancel.set()
            raise
    if not arguments.json:
        print_verified(result)
    return result


def _paths(arguments: Arguments) -> tuple[Path, ...]:
    """A path as it is; an iteration's number, or all of them, in the run's save folder."""
    what = arguments.what
    if what is not None and not what.isdecimal() and not arguments.all:
        return (Path(what),)
    folder = Path(what) if what is not None and not what.isdecimal() else None
    tree = _scanned(folder).checkpoints
    if not isinstance(tree, Known):
        raise NothingFoundError(tree.reason, "name what to verify: milepost verify PATH")
    chosen = _chosen(tree.value, what, all_of_them=arguments.all)
    if not chosen:
        raise NothingFoundError(f"there is no such checkpoint in {tree.value.root}")
    return chosen


def _chosen(tree: CheckpointTree, what: str | None, *, all_of_them: bool) -> tuple[Path, ...]:
    if all_of_them:
        return tuple(Path(each.path) for each in tree.checkpoints)
    if what is not None:
        wanted = int(what)
        return tuple(Path(each.path) for each in tree.checkpoints if each.iteration == wanted)
    tracked = (each for each in tree.checkpoints if each.tracked)
    newest = next(tracked, tree.checkpoints[0] if tree.checkpoints else None)
    return () if newest is None else (Path(newest.path),)


def _scanned(folder: Path | None) -> Snapshot:
    """One look at the save folder that was named, or at that of the run on this machine."""
    now = time.time()
    if folder is not None:
        if not folder.exists():
            raise UsageError(f"{folder}: no such folder")
        place = Found(value=str(folder.absolute()), source="command line")
        attachment = Attachment(name=folder.name, checkpoints=place)
    else:
        attachment = attached(Target(), at=now)
    snapshot = reduce(Snapshot(now=now), Attached(at=now, attachment=replace(attachment)))
    for probe in (ContainerProbe(), CheckpointsProbe(), DiskProbe()):
        found = [
            event for event in probe.read(now, snapshot) if not isinstance(event, ContainerRead)
        ]
        snapshot = reduced(snapshot, found)
        probe.close()
    return reduce(snapshot, TimePassed(at=now))


def _listed_code(snapshot: Snapshot) -> ExitCode:
    loads = snapshot.verdict.would_load
    if loads.best is None:
        return ExitCode.NOTHING_FOUND
    is_best = loads.loads is Loads.CHECKPOINT and loads.iteration == loads.best
    return ExitCode.WELL if is_best else ExitCode.DEGRADED
