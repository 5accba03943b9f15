"""Which converter, called how, into which folder; and why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tui.miles.converter import Conversion, Converter, Surroundings, conversion_plan
from tui.miles.converter_memory import IndexedTensor, memory_row, peak_memory
from tui.model.checkpoint import Checkpoint, CheckpointState, Layout, Soundness, Verification
from tui.model.launch import LaunchArgs, container_path, host_path
from tui.model.plan import Refusal, Row
from tui.model.snapshot import Level, Limits

GIB = 2**30
MOUNTS = (("/data/ckpt", "/ckpt"), ("/data/models", "/root/models"))
LAUNCH = LaunchArgs(script="/root/miles/train.py", hf_checkpoint="/root/models/Qwen3-0.6B")
FSDP: tuple[IndexedTensor, ...] = (
    ("model_state.model.model.embed_tokens.weight", "float32", (1000, 64)),
    ("model_state.model.model.norm.weight", "float32", (64,)),
)
MEGATRON: tuple[IndexedTensor, ...] = (
    ("embedding.word_embeddings.weight", "bfloat16", (1024, 64)),
    ("decoder.final_layernorm.weight", "float32", (64,)),
    ("optimizer.state.exp_avg.embedding.word_embeddings.weight", "float32", (1024, 64)),
    ("decoder.layers.mlp._extra_state", "uint8", (9,)),
)
CONFIG = {"vocab_size": 1000, "dtype": "bfloat16"}


def checkpoint(**changes: object) -> Checkpoint:
    whole = Checkpoint(
        iteration=20,
        path="/data/ckpt/run-a/iter_0000020",
        layout=Layout.FSDP,
        state=CheckpointState.WHOLE,
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def around(
    *taken: str,
    mounts: tuple[tuple[str, str], ...] | None = MOUNTS,
    configs: Mapping[str, Mapping[str, object]] = {"/root/models/Qwen3-0.6B": CONFIG},
    program: tuple[str, ...] = (),
) -> Surroundings:
    return Surroundings(
        exists=frozenset(taken).__contains__,
        config_of=configs.get,
        mounts=mounts,
        program=program,
    )


def planned(
    of: Checkpoint | None = None,
    where: Surroundings | None = None,
    *,
    tensors: tuple[IndexedTensor, ...] = FSDP,
    run: str = "run-a",
    launch: LaunchArgs = LAUNCH,
    origin: str = "",
) -> Conversion:
    found = conversion_plan(
        of or checkpoint(), tensors, where or around(), run=run, launch=launch, origin=origin
    )
    assert isinstance(found, Conversion), found
    return found


def refused(
    of: Checkpoint | None = None,
    where: Surroundings | None = None,
    *,
    tensors: tuple[IndexedTensor, ...] = FSDP,
    launch: LaunchArgs = LAUNCH,
) -> Refusal:
    found = conversion_plan(
        of or checkpoint(), tensors, where or around(), run="run-a", launch=launch
    )
    assert isinstance(found, Refusal), found
    return found


def megatron(**changes: object) -> Checkpoint:
    return checkpoint(layout=Layout.MEGATRON, **changes)


class TestCommand:
    def test_fsdp_in_a_container(self) -> None:
        plan = planned()

        assert plan.argv == (
            *("python3", "-u", "/root/miles/tools/convert_fsdp_to_hf.py"),
            *("--input-dir", "/ckpt/run-a/iter_0000020"),
            *("--output-dir", "/ckpt/models/run-a-step-20"),
            *("--origin-hf-dir", "/root/models/Qwen3-0.6B"),
        )
        assert plan.host_output == "/data/ckpt/models/run-a-step-20"
        assert (plan.input, plan.output) == (plan.argv[4], plan.argv[6])
        assert plan.serve_argv[-2:] == ("--model-path", "/ckpt/models/run-a-step-20")
        assert (plan.converter, plan.tensors) == (Converter.FSDP, 2)

    def test_megatron_without_the_padding_of_its_vocabulary(self) -> None:
        plan = planned(megatron(), tensors=MEGATRON)

        assert plan.argv[:4] == (*("env", "PYTHONPATH=/root/Megatron-LM", "python3", "-u"),)
        assert plan.argv[4] == "/root/miles/tools/convert_torch_dist_to_hf.py"
        assert plan.argv[-2:] == ("--vocab-size", "1000")
        assert plan.tensors == 2

    @pytest.mark.parametrize("config", [{}, {"vocab_size": 1024}, {"vocab_size": "1000"}])
    def test_a_vocabulary_without_padding_or_unknown(self, config: dict[str, object]) -> None:
        where = around(configs={"/root/models/Qwen3-0.6B": config})

        assert "--vocab-size" not in planned(megatron(), where, tensors=MEGATRON).argv

    @pytest.mark.parametrize(
        ("script", "tool"),
        [
            ("/srv/fork/train_async.py", "/srv/fork/tools/convert_fsdp_to_hf.py"),
            ("/root/miles/train.py", "/root/miles/tools/convert_fsdp_to_hf.py"),
            ("train.py", "/root/miles/tools/convert_fsdp_to_hf.py"),
            ("", "/root/miles/tools/convert_fsdp_to_hf.py"),
        ],
    )
    def test_the_converter_lies_in_the_runs_own_repository(self, script: str, tool: str) -> None:
        assert planned(launch=replace(LAUNCH, script=script)).argv[2] == tool

    def test_on_the_host(self) -> None:
        plan = planned(where=around(mounts=None))

        assert plan.input == "/data/ckpt/run-a/iter_0000020"
        assert plan.output == plan.host_output == "/data/ckpt/models/run-a-step-20"

    def test_another_program(self) -> None:
        where = around(program=("python", "-m", "tui.demo.convert"))

        assert planned(where=where).argv[:4] == ("python", "-m", "tui.demo.convert", "--input-dir")

    @pytest.mark.parametrize(
        ("run", "name"),
        [
            ("run-a", "run-a-step-20"),
            ("Run A/2", "Run-A-2-step-20"),
            ("../../etc", "etc-step-20"),
            ("-f", "f-step-20"),
            ("…", "run-step-20"),
            ("x" * 300, "x" * 100 + "-step-20"),
        ],
    )
    def test_the_outputs_name(self, run: str, name: str) -> None:
        assert planned(run=run).output == f"/ckpt/models/{name}"

    def test_a_converted_base_model(self) -> None:
        release = megatron(iteration=0, path="/data/ckpt/run-a/release")

        assert planned(release, tensors=MEGATRON).output == "/ckpt/models/run-a-release"


class TestPlace:
    def test_where_only_the_save_folder_is_mounted(self) -> None:
        where = around(mounts=(("/data/ckpt/run-a", "/save"),))
        plan = planned(where=where)

        assert plan.output == "/save/models/run-a-step-20"
        assert plan.host_output == "/data/ckpt/run-a/models/run-a-step-20"

    def test_on_no_mount(self) -> None:
        assert "on no mount" in refused(where=around(mounts=())).reason

    def test_an_output_that_is_there(self) -> None:
        refusal = refused(where=around("/data/ckpt/models/run-a-step-20"))

        assert refusal.reason == "/data/ckpt/models/run-a-step-20 is there already"


class TestOrigin:
    def test_the_reference_where_it_is_a_hugging_face_folder(self) -> None:
        launch = LaunchArgs(ref_load="/ref")

        assert planned(where=around(configs={"/ref": {}}), launch=launch).origin == "/ref"
        assert "name no Hugging Face folder" in refused(launch=launch).reason

    def test_a_name_of_the_hub(self) -> None:
        launch = LaunchArgs(hf_checkpoint="Qwen/Qwen3-0.6B")
        refusal = refused(launch=launch)

        assert refusal.reason.startswith("--hf-checkpoint Qwen/Qwen3-0.6B is no absolute path")
        assert "Name the folder" in refusal.remedy
        assert planned(launch=launch, origin="/models/q").origin == "/models/q"


class TestNoConverter:
    @pytest.mark.parametrize(
        ("changes", "why"),
        [
            ({"layout": Layout.LORA}, "a LoRA adapter needs no converter"),
            ({"layout": Layout.UNKNOWN}, "is no checkpoint"),
            ({"state": CheckpointState.PARTIAL, "reason": "no rng.pt"}, "it is partial: no rng.pt"),
            ({"state": CheckpointState.SAVING}, "it is saving"),
        ],
    )
    def test_of_this_checkpoint(self, changes: dict[str, object], why: str) -> None:
        assert why in refused(checkpoint(**changes)).reason

    @pytest.mark.parametrize(
        ("soundness", "is_refused"),
        [
            (Soundness.DAMAGED, True),
            (Soundness.NOT_FINITE, True),
            (Soundness.SOUND, False),
            (Soundness.NO_SUMS, False),
        ],
    )
    def test_after_a_verify(self, soundness: Soundness, is_refused: bool) -> None:
        seen = Verification(soundness=soundness, at=1.0, non_finite=3)
        found = conversion_plan(
            checkpoint(verification=seen), FSDP, around(), run="a", launch=LAUNCH
        )

        assert isinstance(found, Refusal) is is_refused
        if isinstance(found, Refusal):
            assert found.reason == f"it is {soundness.value}: 3 values are nan or inf"

    def test_an_index_without_a_model(self) -> None:
        assert "no tensor of a model" in refused(tensors=(("optimizer.w", "float32", (1,)),)).reason


class TestMemory:
    def test_fsdp_holds_the_checkpoint_and_the_model(self) -> None:
        layers = tuple((f"model.layers.{n}.w", "float32", (1000, 64)) for n in range(8))
        memory = planned(tensors=layers).memory

        assert memory.parameters == 512_000
        assert (memory.tensors_bytes, memory.beside_bytes) == (4 * 512_000, 2 * 512_000)
        assert memory.total_bytes == 6 * 512_000 + 2 * GIB

    def test_a_model_that_is_configured_in_float32(self) -> None:
        memory = peak_memory(FSDP, {"text_config": {"torch_dtype": "float32"}}, builds_model=True)

        assert memory.beside_bytes == 4 * 64_064

    def test_megatron_holds_what_it_reads(self) -> None:
        memory = planned(megatron(), tensors=MEGATRON).memory

        assert memory.tensors_bytes == 2 * 65_536 + 4 * 64
        assert memory.beside_bytes == 2 * 65_536, "its largest tensor, while that is read"

    @pytest.mark.parametrize(
        ("dtype", "width"),
        [
            *(("float64", 8), ("int64", 8), ("float32", 4), ("bfloat16", 2), ("float16", 2)),
            *(("float8_e4m3fn", 1), ("uint8", 1), ("bool", 1), ("int4", 1), ("", 1)),
        ],
    )
    def test_widths(self, dtype: str, width: int) -> None:
        assert (
            peak_memory([("w", dtype, (10,))], {}, builds_model=False).tensors_bytes == 10 * width
        )

    @pytest.mark.parametrize(
        ("available", "level"),
        [(40, Level.INFO), (20, Level.WARNING), (14.1, Level.WARNING), (13.9, None), (0, None)],
    )
    def test_room_beside_a_run(self, available: float, level: Level | None) -> None:
        memory = peak_memory([("w", "float32", (GIB // 2,))], {}, builds_model=False)
        assert memory.total_bytes == 6 * GIB
        found = memory_row(memory, int(available * GIB), Limits())

        if level is None:
            assert isinstance(found, Refusal)
            assert "not enough memory: about 6.0 GiB: 2.0 GiB for 536,870,912" in found.reason
        else:
            assert isinstance(found, Row)
            assert found.level is level
            assert f"of {available:.1f} GiB available" in found.text


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("/data/ckpt", "/ckpt"),
        ("/data/ckpt/run-a", "/ckpt/run-a"),
        ("/data/ckpt/deep/x", None),
        ("/data/deep/x", "/ckpt/deep/x"),
        ("/data/ckptx", None),
        ("/else", None),
    ],
)
def test_a_path_of_the_host_in_the_container(path: str, inside: str | None) -> None:
    """Where another mount lies over a part of one, that part of the host is out of reach."""
    mounts = (("/data/ckpt", "/ckpt"), ("/data/deep", "/ckpt/deep"))

    assert container_path(path, mounts) == inside
    if inside is not None:
        assert host_path(inside, mounts) == path
