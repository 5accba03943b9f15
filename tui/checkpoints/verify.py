"""Whether what lies at a path is what was written there: every byte read, every checksum taken.

result = verify(Path("checkpoints/iter_0000004"))
result.soundness, result.faults
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tui.checkpoints import ledger
from tui.checkpoints.dcp import INDEX_NAME
from tui.checkpoints.hf import is_hf, plan_hf, plan_weights
from tui.checkpoints.iteration import is_iteration, plan_iteration
from tui.checkpoints.judging import Findings, findings_of
from tui.checkpoints.ledger_pages import Result
from tui.checkpoints.plan import FileIdentity, Plan, Subject, identity_of
from tui.checkpoints.reading import CancelledError, Window
from tui.checkpoints.shards import SHARD_SUFFIX, plan_folder, plan_shard
from tui.checkpoints.sums import check_outline
from tui.checkpoints.workers import THREADS, Report, check_all
from tui.errors import NothingFoundError, UsageError
from tui.miles.layout import iteration_of
from tui.model.checkpoint import Soundness, Verification

LINE_LIMIT = 40
"""Lines that are kept; the rest is counted."""
_NO_MODEL = ("rng", "training_state", "global_dataset_state_dict", "optim")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResult:
    """What a verify found at one path."""

    path: str
    subject: Subject
    verification: Verification | None = None
    """None: only sizes and headers were looked at, it was cancelled, or something was not read."""
    faults: tuple[str, ...] = ()
    """What is not what was written, one line each."""
    incomplete: tuple[str, ...] = ()
    """What a whole one has and this one never had."""
    numbers: tuple[str, ...] = ()
    """Tensors with nan or inf, of the optimizer too."""
    unread: tuple[str, ...] = ()
    """What could not be judged, and why."""
    notes: tuple[str, ...] = ()
    """What is worth a line and is no fault."""
    files: int = 0
    total_bytes: int = 0
    is_shallow: bool = False
    is_cancelled: bool = False

    @property
    def is_good(self) -> bool:
        """As far as it was looked at, nothing is wrong and nothing is missing."""
        if self.faults or self.incomplete or self.unread or self.is_cancelled:
            return False
        return self.is_shallow or (
            self.verification is not None
            and self.verification.soundness in (Soundness.SOUND, Soundness.NO_SUMS)
        )


def verify(
    path: Path,
    *,
    shallow: bool = False,
    report: Report | None = None,
    cancel: threading.Event | None = None,
    clock: Callable[[], float] = time.time,
    threads: int = THREADS,
) -> VerifyResult:
    """Verify a checkpoint, a part of one, a Hugging Face folder, or one file of these.

    Args:
        path: What to verify. No run has to belong to it.
        shallow: Look at presence, sizes, indexes and headers only; takes milliseconds.
        report: Told bytes done and bytes in all, now and then, by the calling thread.
        cancel: Set it to end the reading within a block.
        clock: Epoch seconds.
        threads: How many read.

    Raises:
        NothingFoundError: nothing that can be verified lies there.
        UsageError: it holds several checkpoints.
    """
    plan = plan_of(path.absolute(), clock())
    if shallow:
        return _looked_at(path, plan)
    begun = time.monotonic()
    page = ledger.page_of(plan.home)
    beside = _files_beside(plan)
    try:
        checked = check_all(plan, cancel or threading.Event(), report, threads=threads)
    except CancelledError:
        return replace(_result(path, plan, findings_of(plan, (), {}, 0.0)), is_cancelled=True)
    found = findings_of(plan, checked, page.digests, clock())
    verification = _verification(plan, found, clock(), time.monotonic() - begun)
    kept = None
    if verification and plan.is_all and not found.unread:
        kept = Result(verification=verification, files=beside)
    trouble = ledger.keep(plan.home, found.digests, kept)
    found.notes += [note for note in (page.note, trouble) if note]
    return replace(_result(path, plan, found), verification=verification)


def plan_of(path: Path, now: float) -> Plan:
    """What a verify of `path` reads. Raises as `verify` does."""
    if path.is_dir():
        return _plan_of_folder(path, now)
    if not path.exists():
        raise NothingFoundError(f"{path} is not there")
    plan = Plan(subject=Subject.FILE, home=_home_of(path.parent), is_all=False)
    match path.suffix:
        case ".distcp":
            plan_shard(plan, path)
        case ".safetensors" | ".bin":
            plan_weights(plan, path, is_model=True)
        case ".pt":
            plan.add_zip(path, is_model=not path.name.startswith(_NO_MODEL))
        case _:
            raise NothingFoundError(f"{path.name} is no checkpoint, and no part of one")
    return plan


def _plan_of_folder(path: Path, now: float) -> Plan:
    names = [entry.name for entry in path.iterdir()]
    if is_iteration(path):
        plan = Plan(subject=Subject.CHECKPOINT, home=path)
        plan_iteration(plan, path, now)
    elif INDEX_NAME in names or any(name.endswith(SHARD_SUFFIX) for name in names):
        home = _home_of(path)
        plan = Plan(subject=Subject.PART, home=home, is_all=home == path)
        plan_folder(plan, path)
    elif is_hf(names):
        plan = Plan(subject=Subject.HF, home=path)
        plan_hf(plan, path)
    elif any(iteration_of(name) is not None for name in names):
        raise UsageError(f"{path} holds several checkpoints", "Name one of its folders.")
    else:
        raise NothingFoundError(f"{path} holds no checkpoint and no model")
    return plan


def _home_of(folder: Path) -> Path:
    """The checkpoint that a folder is a part of, else the folder itself."""
    with suppress(OSError):  # the folder above may be anything, readable or not
        if is_iteration(folder.parent):
            return folder.parent
    return folder


def _files_beside(plan: Plan) -> dict[str, FileIdentity]:
    """Everything in the folders that are read: a file more, or another, voids the result."""
    found = {file.name: file.identity for file in plan.files}
    for folder in {ledger.folder_in(name) for name in found}:
        for name in () if folder is None else ledger.names_in(plan.home, folder):
            with suppress(OSError):
                found.setdefault(name, identity_of(plan.home / name))
    return found


def _verification(plan: Plan, found: Findings, at: float, seconds: float) -> Verification | None:
    """None where something was not read, unless what was read is damaged already."""
    if found.unread and not found.faults:
        return None
    lines = (*found.faults, *plan.incomplete, *found.numbers)
    spare = len(lines) - LINE_LIMIT
    return Verification(
        soundness=found.soundness,
        at=at,
        seconds=seconds,
        checked_bytes=plan.total_bytes,
        faults=(*lines[:LINE_LIMIT], f"and {spare:,} more") if spare > 0 else lines,
        non_finite=found.non_finite,
    )


def _looked_at(path: Path, plan: Plan) -> VerifyResult:
    """What can be told without reading: presence, sizes, indexes, headers, ends of zips."""
    found = findings_of(plan, (), {}, 0.0)
    window = Window(lambda: False)
    try:
        for file in plan.files:
            if file.pieces[0].is_zip and file.pieces[0].length == file.identity.size_bytes:
                window.open(file.path)
                tally = check_outline(window, file.identity.size_bytes)
                found.faults += [f"{file.name}: {fault}" for fault in tally.faults]
    finally:
        window.close()
    return replace(_result(path, plan, found), is_shallow=True)


def _result(path: Path, plan: Plan, found: Findings) -> VerifyResult:
    return VerifyResult(
        path=str(path),
        subject=plan.subject,
        faults=tuple(found.faults),
        incomplete=tuple(plan.incomplete),
        numbers=tuple(found.numbers),
        unread=tuple(found.unread),
        notes=tuple(found.notes),
        files=len(plan.files),
        total_bytes=plan.total_bytes,
    )
