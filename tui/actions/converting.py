"""Run a converter into a new folder, tell how far it is, and prove that the weights arrived.

A folder that is not proven is renamed, so that nobody serves it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tui.actions import converter_runs
from tui.actions.context import Context, Done
from tui.actions.errors import StepFailed
from tui.checkpoints.converted import ConversionProof, index_for, proof_of
from tui.checkpoints.reading import CancelledError
from tui.errors import MilepostError
from tui.miles.converter import Converter
from tui.miles.converter_output import Printed, progress_line
from tui.model.judge.words import gigabytes
from tui.model.plan import ConvertCheckpoint

_LOOK_S = 0.3
_CHUNK_BYTES = 1 << 18
_LONGEST_LINE = 1 << 16


def perform(step: ConvertCheckpoint, context: Context) -> Done:
    """Convert and prove."""
    output = Path(step.output)
    if not converter_runs.was_begun(step):
        if os.path.lexists(output):
            raise StepFailed(f"{output} is there already", "nothing is overwritten: move it away")
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StepFailed(f"{error.filename}: {error.strerror}") from error
        converter_runs.begin(step, context)
    printed = _followed(step, context)
    proof = _proof(step, printed, context)
    if not proof.ok:
        raise StepFailed(
            f"not proven: {proof.line}",
            f"{_put_away(output)}; what it printed: {step.log}",
        )
    converter_runs.tidy(step)
    served = shlex.join(step.serve_argv)
    size = gigabytes(proof.total_bytes)
    return Done(
        line=f"{proof.line}, {size}, in {output}; serve it: {served}", facts={"output": str(output)}
    )


def _followed(step: ConvertCheckpoint, context: Context) -> Printed:
    """What it printed, once it has ended."""
    printed, told = Printed(), ""
    reader = _Lines(Path(step.log))
    while True:
        runs = converter_runs.is_running(step, context)
        for line in reader.new(final=not runs):
            printed = printed.after(line)
        now = progress_line(printed, step.tensors)
        if now != told:
            told = now
            context.note(told)
        if not runs:
            return printed
        if context.is_cancelled:
            converter_runs.end(step, context)
            raise StepFailed("cancelled", _put_away(Path(step.output)))
        context.pause(_LOOK_S)


def _proof(step: ConvertCheckpoint, printed: Printed, context: Context) -> ConversionProof:
    context.note("reading what it wrote")
    converter = Converter(step.converter)
    code = converter_runs.exit_code(step)
    try:
        index = index_for(converter, Path(step.checkpoint))
        return proof_of(Path(step.output), printed, converter, index, exit_code=code)
    except (MilepostError, OSError, ValueError, CancelledError) as fault:
        return ConversionProof(ok=False, line=f"{fault}")


def _put_away(output: Path) -> str:
    """Rename what is not proven; what became of it, in words."""
    if not os.path.lexists(output):
        return "nothing was written"
    number = 1
    aside = Path(f"{output}.failed")
    while os.path.lexists(aside):
        number += 1
        aside = Path(f"{output}.failed-{number}")
    try:
        output.rename(aside)
    except OSError as error:
        return f"it stays in {output}: {error.strerror}"
    return f"renamed to {aside}"


class _Lines:
    """The lines of a growing file, each once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._rest = b""

    def new(self, *, final: bool) -> Iterator[str]:
        """What came since; with `final` the last line too, ended or not."""
        while chunk := self._chunk():
            *lines, self._rest = (self._rest + chunk).replace(b"\r", b"\n").split(b"\n")
            self._rest = self._rest[-_LONGEST_LINE:]
            for line in lines:
                yield line[:_LONGEST_LINE].decode("utf-8", "replace")
        if final and self._rest:
            yield self._rest.decode("utf-8", "replace")
            self._rest = b""

    def _chunk(self) -> bytes:
        with suppress(OSError), self._path.open("rb") as file:
            file.seek(self._at)
            chunk = file.read(_CHUNK_BYTES)
            self._at += len(chunk)
            return chunk
        return b""
