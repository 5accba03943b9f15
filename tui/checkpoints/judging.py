"""What the checked pieces of a verify come to: lines for a person, digests, and one word."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tui.checkpoints.ledger_pages import Digest
from tui.checkpoints.plan import Plan, PlannedFile, identity_of
from tui.checkpoints.workers import Checked
from tui.model.checkpoint import Soundness


@dataclass(slots=True, kw_only=True)
class Findings:
    """What is known after the last byte was read."""

    faults: list[str] = field(default_factory=list)
    """What is not what was written."""
    numbers: list[str] = field(default_factory=list)
    """Tensors with numbers that are nan or inf."""
    non_finite: int = 0
    """Such numbers in the model."""
    unread: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unvouched: list[str] = field(default_factory=list)
    """Files without checksums that no earlier verify has read."""
    digests: dict[str, Digest] = field(default_factory=dict)
    """Of the files without a fault."""

    @property
    def soundness(self) -> Soundness:
        if self.faults:
            return Soundness.DAMAGED
        if self.non_finite:
            return Soundness.NOT_FINITE
        return Soundness.NO_SUMS if self.unvouched else Soundness.SOUND


def findings_of(
    plan: Plan, results: Iterable[Checked], earlier: Mapping[str, Digest], now: float
) -> Findings:
    """Judge every file by its pieces, then by what an earlier verify read in it."""
    found = Findings(faults=list(plan.faults), unread=list(plan.unread), notes=list(plan.notes))
    by_file: dict[str, list[Checked]] = {file.name: [] for file in plan.files}
    for checked in results:
        by_file[checked.file.name].append(checked)
    for file in plan.files:
        pieces = sorted(by_file[file.name], key=lambda checked: checked.piece.offset)
        unread = _why_unread(file, pieces)
        if unread:
            found.unread.append(f"{file.name}: {unread}")
        else:
            _judge(file, pieces, found, now)
    for file in plan.files:
        if file.name in found.digests and file.name in earlier:
            _compare(file, earlier, found)
    return found


def _why_unread(file: PlannedFile, pieces: Iterable[Checked]) -> str:
    for checked in pieces:
        if checked.unread:
            return checked.unread
    try:
        is_same = identity_of(file.path) == file.identity
    except OSError:
        is_same = False
    return "" if is_same else "changed while it was read"


def _judge(file: PlannedFile, pieces: list[Checked], found: Findings, now: float) -> None:
    faults = [
        f"{_label(checked)}: {fault}" for checked in pieces for fault in _piece_faults(checked)
    ]
    wrong = [
        f"{_label(checked)}: {record} does not have its checksum"
        for checked in pieces
        for record in checked.tally.wrong
    ]
    is_unsummed = bool(wrong) and not any(checked.tally.right for checked in pieces)
    if not is_unsummed:
        faults += wrong
    for checked in pieces:
        _note_numbers(checked, found)
    if faults:
        found.faults += faults
        return
    if is_unsummed or not file.has_sums:
        found.unvouched.append(file.name)
    digest = hashlib.sha256()
    for checked in pieces:
        digest.update(checked.piece.offset.to_bytes(8, "little") + checked.tally.digest)
    found.digests[file.name] = Digest(identity=file.identity, digest=digest.hexdigest(), since=now)


def _piece_faults(checked: Checked) -> list[str]:
    faults = list(checked.tally.faults)
    stated, there = checked.piece.tensor_bytes, checked.tally.tensor_bytes
    if not faults and stated is not None and stated != there:
        faults.append(f"a tensor of {there or 0:,} bytes where the index has one of {stated:,}")
    return faults


def _note_numbers(checked: Checked, found: Findings) -> None:
    for bad in checked.tally.non_finite:
        name = f"{_label(checked)}: {bad.name}" if bad.name else _label(checked)
        found.numbers.append(f"{name}: {bad.count:,} of {bad.total:,} numbers are nan or inf")
        if checked.piece.is_model:
            found.non_finite += bad.count


def _label(checked: Checked) -> str:
    name = checked.piece.name
    return f"{checked.file.name}: {name}" if name else checked.file.name


def _compare(file: PlannedFile, earlier: Mapping[str, Digest], found: Findings) -> None:
    """Hold a file against an earlier verify.

    Other bytes are damage where the file system says that nobody wrote them, and where a file that
    only this save has is still the same. Else the file was written anew.
    """
    before, now = earlier[file.name], found.digests[file.name]
    if before.digest == now.digest:
        found.digests[file.name] = replace(now, since=before.since)
        if file.name in found.unvouched:
            found.unvouched.remove(file.name)
        return
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(before.since))
    anchor_before, anchor_now = earlier.get(file.anchor), found.digests.get(file.anchor)
    if before.identity == now.identity:
        fault = f"its bytes changed since they were verified at {when}, its size and time did not"
    elif anchor_before and anchor_now and anchor_before.digest == anchor_now.digest:
        fault = f"not the file that was verified at {when}, though {file.anchor} still is"
    else:
        return
    found.faults.append(f"{file.name}: {fault}")
    del found.digests[file.name]
