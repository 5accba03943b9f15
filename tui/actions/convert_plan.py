"""The plan of a conversion: where it can run, what it makes, and whether there is memory for it."""

from __future__ import annotations

import shlex
from pathlib import Path

from tui.actions.convert_place import Place, place_of
from tui.actions.launch import new_id
from tui.actions.situation import Situation
from tui.checkpoints.converted import index_for
from tui.errors import MilepostError
from tui.miles.converter import Conversion, conversion_plan, converter_of
from tui.miles.converter_memory import memory_row
from tui.model.action import ActionKind
from tui.model.checkpoint import Checkpoint
from tui.model.plan import ActionPlan, ConvertCheckpoint, Refusal, Row
from tui.model.reading import Known


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
    place = place_of(situation)
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
    place: Place,
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
        fresh=place.fresh,
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
