"""Run a converter into a new folder, tell how far it is, and prove that the weights arrived.

A folder that is not proven is renamed, so that nobody serves it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
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
    if "proof" not in context.facts:
        _note_proof(_converted(step, context), step, context)
    facts = context.facts
    converter_runs.tidy(step)
    if aside := facts["aside"]:
        put = _put_away(Path(step.output), Path(aside))
        raise StepFailed(facts["proof"], f"{put}; what it printed: {step.log}")
    line = f"{facts['proof']}, in {step.output}; serve it: {shlex.join(step.serve_argv)}"
    return Done(line=line, facts={"output": step.output})


def _converted(step: ConvertCheckpoint, context: Context) -> ConversionProof:
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
    if printed is None:
        return ConversionProof(ok=False, line="cancelled")
    proof = _proof(step, printed, context)
    line = (
        f"{proof.line}, {gigabytes(proof.total_bytes)}" if proof.ok else f"not proven: {proof.line}"
    )
    return replace(proof, line=line)


def _note_proof(proof: ConversionProof, step: ConvertCheckpoint, context: Context) -> None:
    """Before anything is done about it, so that whoever is killed, it is done to the end."""
    aside = "" if proof.ok else str(_free_beside(Path(f"{step.output}.failed")))
    context.note(proof.line, proof=proof.line, aside=aside)


def _followed(step: ConvertCheckpoint, context: Context) -> Printed | None:
    """What it printed, once it has ended; None: a person asked to leave off."""
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
            return None
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


def _free_beside(path: Path) -> Path:
    number = 1
    free = path
    while os.path.lexists(free):
        number += 1
        free = Path(f"{path}-{number}")
    return free


def _put_away(output: Path, aside: Path) -> str:
    """Rename what is not proven; what became of it, in words."""
    if os.path.lexists(output):
        try:
            output.rename(aside)
        except OSError as error:
            return f"it stays in {output}: {error.strerror}"
    return f"renamed to {aside}" if os.path.lexists(aside) else "nothing was written"


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
