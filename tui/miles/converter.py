"""Turning a checkpoint into a Hugging Face folder: which converter, and how it is called.

The converters are Miles' tools/convert_fsdp_to_hf.py and tools/convert_torch_dist_to_hf.py. They
refuse an output folder that is there, need no GPU, and hold all they read in memory.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tui.miles.converter_memory import IndexedTensor, PeakMemory, peak_memory, setting_of
from tui.model.checkpoint import Checkpoint, CheckpointState, Layout, Soundness
from tui.model.launch import LaunchArgs, container_path
from tui.model.plan import Refusal

REPOSITORY = "/root/miles"
"""Where Miles' image has it."""
EMBEDDING, HEAD = "embedding.word_embeddings.weight", "output_layer.weight"
"""Megatron's names of the two tensors with a row a token."""

HF_ALREADY = Refusal(
    reason="it is a Hugging Face folder already, there is nothing to convert",
    remedy="Serve it as it is.",
)

_MODELS = "models"
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_LIMIT = 100


class Converter(StrEnum):
    """Miles' converters, by file name."""

    FSDP = "convert_fsdp_to_hf.py"
    MEGATRON = "convert_torch_dist_to_hf.py"

    def reads(self, key: str) -> bool:
        """Whether it takes a tensor of this name for one of the model."""
        return "optimizer" not in key and (self is Converter.FSDP or "_state" not in key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where a converter would run, and what of that can be asked from here."""

    exists: Callable[[str], bool]
    """Whether something lies at a path of the host."""
    config_of: Callable[[str], Mapping[str, object] | None]
    """`config.json` of a folder as the converter would name it; None: there is none in reach."""
    mounts: tuple[tuple[str, str], ...] | None = None
    """(host path, container path) pairs of its container; None: it runs on the host."""
    python: str = "python3"
    program: tuple[str, ...] = ()
    """What is called in place of Miles' own converter, as for a simulated run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """One conversion, ready to be run."""

    converter: Converter
    argv: tuple[str, ...]
    input: str
    """This and `output` and `origin` as the converter names them."""
    output: str
    origin: str
    host_output: str
    """The output by a path of the host, where it is proven."""
    tensors: int
    """How many the converter will find."""
    memory: PeakMemory

    @property
    def serve_argv(self) -> tuple[str, ...]:
        """What serves the result, where the converter ran."""
        return ("python3", "-m", "sglang.launch_server", "--model-path", self.output)


def conversion_plan(
    checkpoint: Checkpoint,
    tensors: Iterable[IndexedTensor],
    around: Surroundings,
    *,
    run: str,
    launch: LaunchArgs,
    origin: str = "",
) -> Conversion | Refusal:
    """How `checkpoint` of the run named `run` would be converted.

    Args:
        checkpoint: With its path on the host.
        tensors: What its index lists, the optimizer's too.
        around: Where the converter would run.
        run: Goes into the output's name.
        launch: The run's arguments, which name the origin and lead to the converter.
        origin: Hugging Face folder with configuration and tokenizer, as a person named it.
    """
    converter = converter_of(checkpoint)
    if isinstance(converter, Refusal):
        return converter
    read = tuple(tensor for tensor in tensors if converter.reads(tensor[0]))
    if not read:
        return Refusal(reason="its index lists no tensor of a model")
    found = origin or origin_of(launch, around.config_of)
    if isinstance(found, Refusal):
        return found
    place = _output_of(_name(run, checkpoint), checkpoint, around)
    if isinstance(place, Refusal):
        return place
    host_output, inside, output = place
    config = around.config_of(found) or {}
    own = ("--input-dir", inside, "--output-dir", output, "--origin-hf-dir", found)
    return Conversion(
        converter=converter,
        argv=(*_program(converter, around, launch), *own, *_vocabulary(converter, read, config)),
        input=inside,
        output=output,
        origin=found,
        host_output=host_output,
        tensors=len(read),
        memory=peak_memory(read, config, builds_model=converter is Converter.FSDP),
    )


def converter_of(checkpoint: Checkpoint) -> Converter | Refusal:
    """The one for its layout, where its weights are worth converting."""
    if checkpoint.layout is Layout.LORA:
        return Refusal(
            reason="a LoRA adapter needs no converter: its folder holds PEFT files",
            remedy=f"Serve {checkpoint.path}/adapter with its base model.",
        )
    if checkpoint.layout is Layout.UNKNOWN:
        return Refusal(reason=f"{checkpoint.path} is no checkpoint")
    if checkpoint.state is not CheckpointState.WHOLE:
        return Refusal(
            reason=f"it is {checkpoint.state.value}: {checkpoint.reason}",
            remedy="Choose a whole one.",
        )
    seen = checkpoint.verification
    if seen and seen.soundness in (Soundness.DAMAGED, Soundness.NOT_FINITE):
        faults = "; ".join(seen.faults[:1]) or f"{seen.non_finite:,} values are nan or inf"
        return Refusal(
            reason=f"it is {seen.soundness.value}: {faults}", remedy="Choose an older one."
        )
    return Converter.FSDP if checkpoint.layout is Layout.FSDP else Converter.MEGATRON


def origin_of(
    launch: LaunchArgs, config_of: Callable[[str], Mapping[str, object] | None]
) -> str | Refusal:
    """The Hugging Face folder that the run itself began with."""
    hub = launch.hf_checkpoint or ""
    if hub.startswith("/"):
        return hub
    reference = launch.ref_load or ""
    if reference.startswith("/") and config_of(reference) is not None:
        return reference
    return Refusal(
        reason=f"--hf-checkpoint {hub} is no absolute path of a folder, and the converter needs one"
        if hub
        else "the run's arguments name no Hugging Face folder",
        remedy="Name the folder with configuration and tokenizer of the base model.",
    )


def _program(converter: Converter, around: Surroundings, launch: LaunchArgs) -> tuple[str, ...]:
    """Up to its arguments. Unbuffered, or its progress would come at its end."""
    if around.program:
        return around.program
    folder = posixpath.dirname(launch.script)
    repository = folder if folder.startswith("/") else REPOSITORY
    called = (around.python, "-u", f"{repository}/tools/{converter.value}")
    if converter is Converter.FSDP:
        return called
    megatron = posixpath.join(posixpath.dirname(repository), "Megatron-LM")
    return ("env", f"PYTHONPATH={megatron}", *called)


def _vocabulary(
    converter: Converter, tensors: Iterable[IndexedTensor], config: Mapping[str, object]
) -> tuple[str, ...]:
    """Megatron pads the vocabulary, and no server loads an embedding with rows too many."""
    wanted = setting_of(config, "vocab_size")
    rows = {shape[0] for key, _, shape in tensors if key.endswith(EMBEDDING) and shape}
    if converter is Converter.FSDP or type(wanted) is not int or not rows or max(rows) <= wanted:
        return ()
    return ("--vocab-size", str(wanted))


def _output_of(
    name: str, checkpoint: Checkpoint, around: Surroundings
) -> tuple[str, str, str] | Refusal:
    """The output on the host, and input and output for the converter.

    It goes beside the save folder; into it, where only that is mounted.
    """
    root = posixpath.dirname(checkpoint.path.rstrip("/"))
    places = [posixpath.join(above, _MODELS, name) for above in (posixpath.dirname(root), root)]
    pairs = [(place, _inside(place, around)) for place in places]
    host, output = next(((host, seen) for host, seen in pairs if seen), ("", None))
    inside = _inside(checkpoint.path, around)
    if inside is None or output is None:
        return Refusal(
            reason=f"{checkpoint.path} is on no mount of the container",
            remedy="Mount it, or convert in an environment with Miles on this host.",
        )
    if around.exists(host):
        return Refusal(
            reason=f"{host} is there already", remedy="Move it away: nothing is overwritten."
        )
    return host, inside, output


def _inside(path: str, around: Surroundings) -> str | None:
    return path if around.mounts is None else container_path(path, around.mounts)


def _name(run: str, checkpoint: Checkpoint) -> str:
    """`run-a-step-20`; the number is that of the checkpoint's folder."""
    plain = _NOT_IN_A_NAME.sub("-", run)[:_NAME_LIMIT].strip("-.") or "run"
    is_base = posixpath.basename(checkpoint.path.rstrip("/")) == "release"
    return f"{plain}-release" if is_base else f"{plain}-step-{checkpoint.iteration}"
