"""Conversions run for tests: Miles' tools are the stand-ins of `tests/converters`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tui.checkpoints.converted import ConversionProof, index_for, proof_of
from tui.checkpoints.dcp import index_of
from tui.demo import base, checkpoint
from tui.demo.weights import Model
from tui.miles.converter import Conversion, Surroundings, conversion_plan
from tui.miles.converter_output import Printed, printed_by
from tui.model.checkpoint import Checkpoint, CheckpointState, Layout
from tui.model.launch import LaunchArgs

TESTS = Path(__file__).parent
DEADLINE_S = 200.0


@dataclass(frozen=True, kw_only=True)
class Ran:
    """One converter that ran to its end."""

    conversion: Conversion
    checkpoint: Path
    code: int
    text: str

    @property
    def output(self) -> Path:
        return Path(self.conversion.host_output)

    @property
    def printed(self) -> Printed:
        return printed_by(self.text.splitlines())

    def proof(self, code: int | None = 0) -> ConversionProof:
        """By the exit code that it ended with, or none where `None` is given."""
        converter = self.conversion.converter
        index = index_for(converter, self.checkpoint)
        exit_code = None if code is None else self.code
        return proof_of(self.output, self.printed, converter, index, exit_code=exit_code)


def model() -> Model:
    return Model(total_mb=2.0, seed=7)


def fsdp_checkpoint(root: Path) -> Path:
    """A checkpoint of the demo, in the save folder `run-a`."""
    for _ in checkpoint.save(root / "run-a", 19, model(), seed=7):
        pass
    return root / "run-a" / "iter_0000020"


def origin(root: Path) -> Path:
    """The base model of the same run."""
    base.write(root / "base", model())
    return root / "base"


def tools(root: Path) -> str:
    """A folder like Miles' own, with Megatron's beside it; its `train.py`."""
    (root / "miles").mkdir()
    (root / "miles" / "tools").symlink_to(TESTS / "converters")
    (root / "Megatron-LM").symlink_to(TESTS)
    return str(root / "miles" / "train.py")


def config_of(folder: str) -> dict[str, object] | None:
    path = Path(folder) / "config.json"
    return json.loads(path.read_text()) if path.exists() else None


def plan(
    folder: Path,
    origin: Path,
    *,
    script: str = "",
    program: tuple[str, ...] = (),
    layout: Layout = Layout.FSDP,
) -> Conversion:
    """How the plan has it run."""
    found = Checkpoint(iteration=20, path=str(folder), layout=layout, state=CheckpointState.WHOLE)
    around = Surroundings(
        exists=os.path.lexists, config_of=config_of, python=sys.executable, program=program
    )
    planned = conversion_plan(
        found,
        index_of(folder / "model" if layout is Layout.FSDP else folder).tensors,
        around,
        run="run-a",
        launch=LaunchArgs(script=script, hf_checkpoint=str(origin)),
    )
    assert isinstance(planned, Conversion), planned
    return planned


def run(conversion: Conversion, folder: Path, fault: str = "") -> Ran:
    """Run it to its end."""
    done = subprocess.run(
        conversion.argv,
        env={**os.environ, "CONVERTER_FAULT": fault},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=DEADLINE_S,
        check=False,
    )
    return Ran(
        conversion=conversion, checkpoint=folder, code=done.returncode, text=done.stdout.decode()
    )
