"""Whether the weights of a checkpoint arrived in the Hugging Face folder that was made of it.

index = index_for(Converter.FSDP, Path("checkpoints/iter_0000020"))
proof = proof_of(Path("models/run-a-step-20"), printed_by(lines), Converter.FSDP, index)
proof.ok, proof.line

Neither converter can be taken at its word: the one for FSDP ends with 0 though weights are missing,
the one for Megatron writes its index of the shards before the shards.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tui.checkpoints.counted import compared, counted_of
from tui.checkpoints.dcp import index_of
from tui.checkpoints.hf import INDEX_SUFFIXES
from tui.checkpoints.hf_folder import HfFolder, folder_of
from tui.checkpoints.index import DcpIndex
from tui.checkpoints.reading import CancelledError
from tui.checkpoints.verify import verify
from tui.checkpoints.workers import Report
from tui.errors import NothingFoundError, UsageError
from tui.miles.converter import Converter
from tui.miles.converter_memory import setting_of
from tui.miles.converter_output import Printed

_HEAD = "lm_head.weight"
_SHARD_INDEX = f"model{INDEX_SUFFIXES[0]}"
_SHELL_SIGNAL = 128
"""A shell, and Docker, tell of a death by a signal with a code this much higher."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionProof:
    """What one output folder is worth."""

    ok: bool
    line: str
    """The whole of it, or what is wrong first."""
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What is worth a line and is no fault."""
    parameters: int | None = None
    """In the folder; None where they cannot be counted."""
    total_bytes: int = 0


def index_for(converter: Converter, folder: Path) -> DcpIndex:
    """The index of what the converter reads of a checkpoint folder. Raises as `index_of` does."""
    return index_of(folder / "model" if converter is Converter.FSDP else folder)


def proof_of(
    output: Path,
    printed: Printed,
    converter: Converter,
    index: DcpIndex,
    *,
    exit_code: int | None = 0,
    report: Report | None = None,
    cancel: threading.Event | None = None,
) -> ConversionProof:
    """Read all of `output`, and hold it against what the checkpoint's `index` lists.

    Args:
        output: What the converter wrote.
        printed: All that it printed.
        converter: Which one it was.
        index: Of the model's part of the checkpoint.
        exit_code: As `subprocess` has it; None where it was lost.
        report: Told bytes done and bytes in all.
        cancel: Set it to end the reading.

    Raises:
        CancelledError: it was cancelled.
    """
    trial = _Trial()
    trial.faults += _ended(printed, exit_code)
    try:
        seen = verify(output, report=report, cancel=cancel)
        folder = folder_of(output)
    except (NothingFoundError, UsageError) as error:
        trial.faults.append(error.message)
        return trial.failed()
    except OSError as error:
        trial.faults.append(f"{output}: {error.strerror}")
        return trial.failed()
    if seen.is_cancelled:
        raise CancelledError
    trial.faults += (*seen.faults, *seen.incomplete, *seen.numbers, *seen.unread)
    trial.notes += seen.notes
    trial.judge_files(folder)
    trial.judge_printed(folder, printed, converter)
    trial.judge_count(folder, index, converter)
    proof = trial.failed() if trial.faults else trial.passed(folder, printed)
    return replace(proof, parameters=folder.counted.total, total_bytes=seen.total_bytes)


def _ended(printed: Printed, exit_code: int | None) -> Iterator[str]:
    """How it ended. An exception that it survived is none of ours."""
    if exit_code == 0 or (exit_code is None and printed.is_written):
        return
    code = exit_code or 0
    number = -code if code < 0 else code - _SHELL_SIGNAL
    if number > 0:
        yield f"the converter was ended by signal {number}, {printed.stage.value}"
    elif printed.trouble is not None:
        yield f"{printed.trouble.failure.value}: {printed.trouble.text}"
    elif code:
        yield f"the converter ended with code {code}, {printed.stage.value}"


class _Trial:
    """Gathers what speaks against a folder, and what is worth a line."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.notes: list[str] = []

    def judge_files(self, folder: HfFolder) -> None:
        if folder.shards > 1 and _SHARD_INDEX not in folder.names:
            self.faults.append(f"{folder.shards:,} shards and no {_SHARD_INDEX}")
        for name in folder.names:
            if name.endswith(".bin"):
                self.notes.append(f"{name} holds no converted weights: the origin had it")

    def judge_printed(self, folder: HfFolder, printed: Printed, converter: Converter) -> None:
        if not printed.is_written:
            self.faults.append("the converter never said that all weights were written")
        if converter is Converter.MEGATRON:  # it says nothing of keys
            return
        some, of_all = printed.matched or (0, 0)
        if not 0 < some == of_all:
            self.faults.append(f"{some:,} of {of_all:,} keys of the checkpoint matched")
        missing = printed.missing
        if missing is None:
            self.faults.append("the converter never said which keys were missing")
        elif missing.first == (_HEAD,) and missing.count == 1 and folder.is_tied:
            self.notes.append(f"{_HEAD} is tied to the embedding and needs no weight of its own")
        elif missing.count:
            self.faults.append(f"keys of the model without a weight, {missing.count:,}: {missing}")

    def judge_count(self, folder: HfFolder, index: DcpIndex, converter: Converter) -> None:
        tensors = ((key, shape) for key, _, shape in index.tensors if converter.reads(key))
        tokens = setting_of(folder.config, "vocab_size")
        is_padded = converter is Converter.MEGATRON and type(tokens) is int
        counted = folder.counted
        fault, told = compared(
            counted_of(tensors), counted, is_tied=folder.is_tied, is_padded=is_padded
        )
        self.notes += told
        if fault:
            self.faults.append(fault)
        for name, shape in (("embedding", counted.embedding), ("head", counted.head)):
            if shape and type(tokens) is int and shape[0] != tokens:
                self.faults.append(
                    f"its {name} has {shape[0]:,} rows, its configuration wants {tokens:,}"
                )

    def passed(self, folder: HfFolder, printed: Printed) -> ConversionProof:
        keys = f", {printed.matched[0]:,} keys matched" if printed.matched else ""
        shards = "1 shard" if folder.shards == 1 else f"{folder.shards:,} shards"
        line = f"{folder.counted.total:,} parameters arrived{keys}, {shards} whole, all finite"
        return ConversionProof(ok=True, line=line, notes=tuple(self.notes))

    def failed(self) -> ConversionProof:
        more = f"; and {len(self.faults) - 1:,} more" if len(self.faults) > 1 else ""
        return ConversionProof(
            ok=False,
            line=self.faults[0] + more,
            faults=tuple(self.faults),
            notes=tuple(self.notes),
        )
