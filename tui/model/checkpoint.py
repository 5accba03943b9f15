"""Checkpoints as they lie on disk. Formats: facts of Miles, section 4."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tui.model.reading import NOT_ASKED, Reading


class Layout(StrEnum):
    """Who wrote the folder, and so how it is read."""

    FSDP = "fsdp"
    MEGATRON = "megatron"
    LORA = "lora"
    UNKNOWN = "unknown"


class CheckpointState(StrEnum):
    """Whether a resume could use it."""

    WHOLE = "whole"
    PARTIAL = "partial"
    """A save ended before it was done: parts are missing."""
    SAVING = "saving"
    """Parts are missing and files are still changing."""
    DAMAGED = "damaged"
    """All parts are there and at least one cannot be what was written."""


class Soundness(StrEnum):
    """What checking the bytes came to."""

    SOUND = "sound"
    """Every sum is right, and every number is finite."""
    NOT_FINITE = "not finite"
    """Every sum is right, and the model holds nan or inf: saved after the damage."""
    NO_SUMS = "no checksums"
    """Sound as far as it can be told: the writer left its checksums out."""
    DAMAGED = "damaged"
    """At least one file is not what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result of a deep verify, and when. A change of any file voids it."""

    soundness: Soundness
    at: float
    """Epoch seconds of its end."""
    seconds: float = 0.0
    checked_bytes: int = 0
    faults: tuple[str, ...] = ()
    """One line a fault: file, item, what is wrong."""
    non_finite: int = 0
    """Elements of the model that are nan or inf."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifying:
    """A deep verify that a person asked for: under way, or ended without a result."""

    path: str
    """The checkpoint's folder."""
    asked_at: float
    """Tells it from an earlier one of the same folder."""
    done_bytes: int = 0
    total_bytes: int = 0
    """0: what there is to read is not known yet."""
    seconds: float = 0.0
    """Since the reading began."""
    fault: str = ""
    """Why there is no result; empty while it is under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One `iter_0000123` folder with what belongs to it."""

    iteration: int
    """The number in the folder's name."""
    path: str
    layout: Layout
    state: CheckpointState
    missing: tuple[str, ...] = ()
    """What a whole checkpoint has and this one has not, as paths below the folder."""
    reason: str = ""
    """One line: why it is not whole; of a whole one, what it lacks outside its folder."""
    size_bytes: int = 0
    taken_at: float = 0.0
    """Epoch seconds of its last written file, or the time that a whole one states itself."""
    after_rollout: int = -1
    """Last rollout whose training is in it. FSDP: iteration - 1. Megatron: iteration."""
    resumes_at: int = 0
    """First rollout of a run that loads it."""
    tracked: bool = False
    """The tracker file names it: a resume would load it."""
    has_data_state: bool = True
    """The data source's position was saved with it; without, the data order starts again."""
    parameter_count: int | None = None
    """Elements of the model's tensors by its index; None when that was not read."""
    verification: Verification | None = None
    """None: its bytes were never checked, or have changed since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointTree:
    """One save folder."""

    root: str
    tracker: Reading[str] = NOT_ASKED
    """Text of `latest_checkpointed_iteration.txt`."""
    checkpoints: tuple[Checkpoint, ...] = ()
    """Newest iteration first."""
    note: str = ""
    """A fact about the folder as a whole worth a line, such as a folder one level too deep."""
