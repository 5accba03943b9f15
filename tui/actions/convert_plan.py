"""The plan of a conversion: where it can run, what it makes, and whether there is memory for it."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tui.actions.launch import new_id
from tui.actions.situation import Situation
from tui.checkpoints.converted import index_for
from tui.errors import MilepostError
from tui.miles.converter import Conversion, Surroundings, conversion_plan, converter_of
from tui.miles.converter_memory import memory_row
from tui.model.action import ActionKind
from tui.model.checkpoint import Checkpoint
from tui.model.launch import host_path
from tui.model.plan import ActionPlan, ConvertCheckpoint, Refusal, Row
from tui.model.reading import Known

_DEMO = (sys.executable, "-u", "-m", "tui.demo.convert")
_CONFIG_BYTES = 1 << 20


def plan_convert(situation: Situation, iteration: int, origin: str = "") -> ActionPlan | Refusal:
    """Turn that checkpoint into a Hugging Face folder, and prove that the weights arrived."""
    checkpoint = _checkpoint(situation, iteration)
    if checkpoint is None:
        return Refusal(reason=f"there is no checkpoint {iteration} to convert")
    converter = converter_of(checkpoint)
    if isinstance(converter, Refusal):
        return converter
    try:
        index = index_for(converter, Path(checkpoint.path))
    except (MilepostError, OSError, ValueError) as fault:
        return Refusal(reason=f"the index of checkpoint {iteration} cannot be read: {fault}")
    place = _place_of(situation)
    conversion = conversion_plan(
        checkpoint,
        index.tensors,
        place.around,
        run=situation.name,
        launch=situation.snapshot.story.launch,
        origin=origin,
    )
    if isinstance(conversion, Refusal):
        return conversion
    memory = _memory(situation, conversion)
    if isinstance(memory, Refusal):
        return memory
    return _plan(situation, checkpoint, conversion, place, memory)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where the converter would run."""

    around: Surroundings
    words: str
    container_id: str = ""
    image: str = ""
    binds: tuple[tuple[str, str], ...] = ()
    cwd: str = ""


def _place_of(situation: Situation) -> _Place:
    """In the run's container while it lives, else in a fresh one like it, else on this host."""
    program = _DEMO if situation.snapshot.attachment.demo and _is_here(situation) else ()
    container = situation.run.container if situation.run is not None else None
    if container is not None and not _is_here(situation):
        mounts = container.container.mounts
        around = _around(mounts, ("python3", *_DEMO[1:]) if _runs_demo(situation) else ())
        if container.container.status == "running":
            words = f"in container {container.container.name}"
            return _Place(around=around, words=words, container_id=container.container.id)
    image, mounts = _image_of(situation)
    if image:
        around = _around(mounts, ("python3", *_DEMO[1:]) if _runs_demo(situation) else ())
        words = f"in a fresh container of {image}"
        return _Place(around=around, words=words, image=image, binds=mounts)
    cwd = situation.recipe.cwd if situation.recipe is not None else ""
    python = situation.recipe.argv[0] if situation.recipe and situation.recipe.argv else ""
    around = Surroundings(
        exists=os.path.lexists,
        config_of=_config_at,
        program=program,
        python=python if "python" in os.path.basename(python) else "python3",  # noqa: PTH119
    )
    return _Place(around=around, words="on this host", cwd=cwd)


def _is_here(situation: Situation) -> bool:
    return situation.run.is_here if situation.run is not None else not _image_of(situation)[0]


def _runs_demo(situation: Situation) -> bool:
    return "tui.demo" in " ".join(situation.snapshot.story.launch.argv)


def _image_of(situation: Situation) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Of the container that the run is or was in; empty where it was in none."""
    recipe = situation.recipe
    if recipe is None:
        return "", ()
    if recipe.container_spec:
        with suppress(ValueError, AttributeError):
            return str(json.loads(recipe.container_spec).get("Image", "")), recipe.mounts
    return "", recipe.mounts


def _around(mounts: tuple[tuple[str, str], ...], program: tuple[str, ...]) -> Surroundings:
    def config_of(folder: str) -> Mapping[str, object] | None:
        path = host_path(folder, mounts)
        return _config_at(path) if path is not None else None

    return Surroundings(exists=os.path.lexists, config_of=config_of, mounts=mounts, program=program)


def _config_at(folder: str) -> Mapping[str, object] | None:
    with suppress(OSError, ValueError):
        with Path(folder, "config.json").open("rb") as file:
            config = json.loads(file.read(_CONFIG_BYTES))
        return config if isinstance(config, dict) else None
    return None


def _checkpoint(situation: Situation, iteration: int) -> Checkpoint | None:
    tree = situation.snapshot.checkpoints
    known = tree.value.checkpoints if isinstance(tree, Known) else ()
    return next((each for each in known if each.iteration == iteration), None)


def _memory(situation: Situation, conversion: Conversion) -> Row | Refusal:
    memory = situation.snapshot.memory
    if not isinstance(memory, Known):
        return Row(label="Memory", text=f"{conversion.memory}; what is available is not known")
    available = memory.value.available_bytes
    return memory_row(conversion.memory, available, situation.snapshot.limits)


def _plan(
    situation: Situation,
    checkpoint: Checkpoint,
    conversion: Conversion,
    place: _Place,
    memory: Row,
) -> ActionPlan:
    identity = new_id(ActionKind.CONVERT, situation.at)
    step = ConvertCheckpoint(
        converter=conversion.converter.value,
        argv=conversion.argv,
        checkpoint=checkpoint.path,
        output=conversion.host_output,
        log=f"{conversion.host_output}.{identity}.log",
        inside_log=f"{conversion.output}.{identity}.log",
        tensors=conversion.tensors,
        serve_argv=conversion.serve_argv,
        container_id=place.container_id,
        image=place.image,
        binds=place.binds,
        cwd=place.cwd,
    )
    return ActionPlan(
        id=identity,
        kind=ActionKind.CONVERT,
        title=f"Convert checkpoint {checkpoint.iteration} of {situation.name}",
        run_id=situation.run_id,
        run_name=situation.name,
        made_at=situation.at,
        rows=(
            Row(label="Makes", text=conversion.host_output),
            Row(label="With", text=f"{conversion.converter.value}, {place.words}"),
            Row(label="", text=shlex.join(conversion.argv)),
            Row(
                label="From", text=f"weights of {checkpoint.path}, the rest of {conversion.origin}"
            ),
            memory,
            Row(label="Then", text="count, sizes and numbers of all weights are proven"),
        ),
        steps=(step,),
        go="convert",
    )
