"""A converter ends with 0 in many ways; the weights arrived in one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import conversions
import megatron_tree
import pytest
from conversions import Ran

from tui.checkpoints.converted import index_for, proof_of
from tui.checkpoints.counted import compared, counted_of
from tui.checkpoints.reading import CancelledError
from tui.demo import convert
from tui.miles.converter import Converter
from tui.miles.converter_output import Keys, Printed, Stage, printed_by, progress_line
from tui.model.checkpoint import Layout

PARAMETERS = 139_648
SAID = Printed(matched=(25, 25), missing=Keys(count=0, first=()), is_written=True)


@pytest.fixture
def script(tmp_path: Path) -> str:
    return conversions.tools(tmp_path)


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    return conversions.origin(tmp_path)


@pytest.fixture
def fsdp(tmp_path: Path) -> Path:
    return conversions.fsdp_checkpoint(tmp_path)


@pytest.fixture
def megatron(tmp_path: Path) -> Path:
    folder = tmp_path / "run-a" / "iter_0000020"
    megatron_tree.write(folder, conversions.model())
    return folder


def configure(origin: Path, **changes: object) -> None:
    path = origin / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


class TestFsdp:
    @pytest.fixture
    def ran(self, script: str, origin: Path, fsdp: Path, request: pytest.FixtureRequest) -> Ran:
        fault = getattr(request, "param", "")
        return conversions.run(conversions.plan(fsdp, origin, script=script), fsdp, fault)

    def test_all_arrived(self, ran: Ran, tmp_path: Path) -> None:
        proof = ran.proof()

        assert ran.code == 0
        assert ran.output == tmp_path / "models" / "run-a-step-20"
        assert proof.ok, proof.faults
        assert (
            proof.line == "139,648 parameters arrived, 25 keys matched, 1 shard whole, all finite"
        )
        assert proof.parameters == PARAMETERS
        assert (proof.faults, proof.notes) == ((), ())
        assert ran.proof(None).ok, "a lost exit code is no fault where all was written"
        assert ran.printed.found == ran.conversion.tensors == 25

    @pytest.mark.parametrize("ran", ["shards"], indirect=True)
    def test_in_two_shards(self, ran: Ran) -> None:
        assert "2 shards whole" in ran.proof().line

    @pytest.mark.parametrize(
        ("ran", "code", "fault"),
        [
            ("none matched", 0, "0 of 25 keys of the checkpoint matched"),
            (
                "parts missing",
                0,
                "keys of the model without a weight, 2: lm_head.weight, model.norm",
            ),
            ("tied", 0, "keys of the model without a weight, 1: lm_head.weight"),
            ("not all written", 0, "139,584 parameters in it, 139,648 in the checkpoint"),
            ("shard missing", 0, "'model-00002-of-00002.safetensors' is missing"),
            ("index missing", 0, "2 shards and no model.safetensors.index.json"),
            ("cut short", 0, "bytes long, its header needs"),
            ("not finite", 0, "model.norm.weight: 1 of 64 numbers are nan or inf"),
            ("no tokenizer", 0, "no tokenizer beside the weights"),
            ("no config", 0, "config.json: missing"),
            ("killed", -9, "the converter was ended by signal 9, writing the weights"),
            ("disk full", 1, "no disk space is left: OSError: [Errno 28]"),
            ("untrained", 1, "weights of the model are not in the checkpoint: ValueError: 3 param"),
            ("no memory", 1, "no memory is left: RuntimeError: [enforce fail"),
            ("no libraries", 1, "its libraries are not in reach: ModuleNotFoundError: No module"),
        ],
        indirect=["ran"],
    )
    def test_a_failure(self, ran: Ran, code: int, fault: str) -> None:
        proof = ran.proof()

        assert ran.code == code, ran.text
        assert not proof.ok
        assert any(fault in told for told in proof.faults), proof.faults
        assert proof.line.startswith(proof.faults[0])
        assert not ran.proof(None).ok, "it shows without the exit code too"

    def test_an_output_that_is_there_is_not_touched(
        self, script: str, origin: Path, fsdp: Path
    ) -> None:
        planned = conversions.plan(fsdp, origin, script=script)
        output = Path(planned.host_output)
        output.mkdir(parents=True)
        (output / "mine").write_text("mine")
        ran = conversions.run(planned, fsdp)

        assert ran.code == 1
        assert "the output folder is there already" in ran.proof().line
        assert [path.name for path in output.iterdir()] == ["mine"]

    @pytest.mark.parametrize("ran", ["tied"], indirect=True)
    @pytest.mark.parametrize("configured", [True, None])
    def test_a_tied_head_is_fine(self, ran: Ran, configured: bool | None) -> None:
        configure(ran.output, tie_word_embeddings=configured)
        proof = ran.proof()

        assert proof.ok, proof.faults
        assert proof.parameters == PARAMETERS - 512 * 64
        assert proof.notes == (
            "lm_head.weight is tied to the embedding and needs no weight of its own",
            "its head is its embedding, counted once",
        )

    @pytest.mark.parametrize("ran", ["parts missing"], indirect=True)
    def test_a_tied_head_excuses_nothing_else(self, ran: Ran) -> None:
        configure(ran.output, tie_word_embeddings=True)

        assert not ran.proof().ok

    def test_an_embedding_of_another_size_than_configured(self, ran: Ran) -> None:
        configure(ran.output, vocab_size=500)

        assert ran.proof().faults == (
            "its embedding has 512 rows, its configuration wants 500",
            "its head has 512 rows, its configuration wants 500",
        )

    def test_weights_of_the_origin_are_no_result(self, ran: Ran) -> None:
        (ran.output / "model.safetensors").rename(ran.output / "pytorch_model.bin")

        assert not ran.proof().ok


class TestMegatron:
    def run(self, script: str, origin: Path, folder: Path, fault: str = "") -> Ran:
        planned = conversions.plan(folder, origin, script=script, layout=Layout.MEGATRON)
        return conversions.run(planned, folder, fault)

    def test_all_arrived(self, script: str, origin: Path, megatron: Path) -> None:
        ran = self.run(script, origin, megatron)
        proof = ran.proof()

        assert proof.ok, (proof.faults, ran.text)
        assert proof.line == "139,648 parameters arrived, 3 shards whole, all finite"
        assert proof.notes == (
            "64 rows that pad the vocabulary are left out of its head",
            "64 rows that pad the vocabulary are left out of its embedding",
        )
        assert (ran.output / "model-00000-of-00003.safetensors").exists()

    @pytest.mark.parametrize(
        ("fault", "code", "told"),
        [
            ("killed", -9, "ended by signal 9"),
            ("killed", -9, "'model-00002-of-00003.safetensors' is missing"),
            ("killed", -9, "the converter never said that all weights were written"),
            ("not all written", 0, "139,584 parameters in it, 147,840 in the checkpoint"),
        ],
    )
    def test_a_failure(
        self, script: str, origin: Path, megatron: Path, fault: str, code: int, told: str
    ) -> None:
        ran = self.run(script, origin, megatron, fault)

        assert ran.code == code
        assert not ran.proof().ok
        assert any(told in line for line in ran.proof().faults), ran.proof().faults

    def test_a_vocabulary_with_its_padding_is_loaded_by_nobody(
        self, script: str, origin: Path, megatron: Path
    ) -> None:
        planned = conversions.plan(megatron, origin, script=script, layout=Layout.MEGATRON)
        assert planned.argv[-2:] == ("--vocab-size", "512")
        argv = (*planned.argv[:-2], "--vocab-size", "576")
        ran = conversions.run(replace(planned, argv=argv), megatron)

        assert ran.proof().faults[0] == "its embedding has 576 rows, its configuration wants 512"

    def test_rows_that_went_are_padding_only_where_a_vocabulary_is_configured(
        self, script: str, origin: Path, megatron: Path
    ) -> None:
        ran = self.run(script, origin, megatron)
        configure(ran.output, vocab_size=None)

        assert ran.proof().faults == ("139,648 parameters in it, 147,840 in the checkpoint",)

    def test_a_folder_without_common_pt(self, script: str, origin: Path, megatron: Path) -> None:
        (megatron / "common.pt").unlink()
        ran = self.run(script, origin, megatron)

        assert ran.proof().line.startswith("a file or folder is missing: FileNotFoundError")


def test_the_demos_converter(
    tmp_path: Path, origin: Path, fsdp: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    folders = ("--input-dir", fsdp, "--output-dir", output, "--origin-hf-dir", origin)
    convert.main([str(word) for word in folders])
    printed = printed_by(capsys.readouterr().out.splitlines())
    proof = proof_of(output, printed, Converter.FSDP, index_for(Converter.FSDP, fsdp))

    assert proof.ok, proof.faults
    assert proof.parameters == PARAMETERS
    assert (printed.stage, printed.copied) == (Stage.COPYING, 4)
    with pytest.raises(ValueError, match="already exists"):
        convert.main([str(word) for word in folders])


def test_a_checkpoint_of_a_real_run(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, origin = data / "captures/ckpt-run-a/iter_0000004", data / "captures/hf-origin"
    folders = ("--input-dir", folder, "--output-dir", tmp_path / "x", "--origin-hf-dir", origin)
    convert.main([str(word) for word in folders])
    printed = printed_by(capsys.readouterr().out.splitlines())
    index = index_for(Converter.FSDP, folder)

    proof = proof_of(tmp_path / "x", printed, Converter.FSDP, index)
    assert proof.ok, proof.faults
    base = proof_of(origin, SAID, Converter.FSDP, index)
    assert base.ok, "the same names and shapes: only what was printed tells them apart"


def test_progress_comes_while_it_works(script: str, origin: Path, fsdp: Path) -> None:
    planned = conversions.plan(fsdp, origin, script=script)
    environment = {**os.environ, "CONVERTER_FAULT": "hangs"}
    printed = Printed()
    with subprocess.Popen(
        planned.argv, env=environment, stdout=subprocess.PIPE, text=True
    ) as converter:
        assert converter.stdout is not None
        while printed.found < planned.tensors:
            line = converter.stdout.readline()
            assert line, "it ended"
            printed = printed.after(line)
        told = progress_line(printed, planned.tensors)
        converter.kill()

    assert told == "reading the checkpoint: 25 of 25 tensors found"
    proof = proof_of(
        Path(planned.host_output), printed, planned.converter, index_for(Converter.FSDP, fsdp)
    )
    assert proof.line.endswith("is not there")


def test_what_is_no_folder(tmp_path: Path, fsdp: Path) -> None:
    index = index_for(Converter.FSDP, fsdp)
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()

    for name in ("nowhere", "file", "empty"):
        assert not proof_of(tmp_path / name, SAID, Converter.FSDP, index).ok


def test_nothing_printed_is_no_proof(data: Path, fsdp: Path) -> None:
    index = index_for(Converter.FSDP, fsdp)
    proof = proof_of(data / "captures/hf-origin", Printed(), Converter.FSDP, index)

    assert proof.faults == (
        "the converter never said that all weights were written",
        "0 of 0 keys of the checkpoint matched",
        "the converter never said which keys were missing",
    )


def test_cancelling_gives_no_verdict(data: Path, fsdp: Path, tmp_path: Path) -> None:
    output = shutil.copytree(data / "captures/hf-origin", tmp_path / "x")
    cancel = threading.Event()
    cancel.set()

    with pytest.raises(CancelledError):
        proof_of(output, SAID, Converter.FSDP, index_for(Converter.FSDP, fsdp), cancel=cancel)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (137, "the converter was ended by signal 9, starting"),
        (-15, "the converter was ended by signal 15, starting"),
        (3, "the converter ended with code 3, starting"),
    ],
)
def test_how_it_ended(data: Path, fsdp: Path, code: int, told: str) -> None:
    index = index_for(Converter.FSDP, fsdp)
    origin = data / "captures/hf-origin"

    assert proof_of(origin, SAID, Converter.FSDP, index, exit_code=code).faults == (told,)


HF = {"model.embed_tokens.weight": (8, 4), "lm_head.weight": (8, 4), "model.norm.weight": (4,)}
WITHOUT_HEAD = {name: shape for name, shape in HF.items() if name != "lm_head.weight"}
MEGATRON = {"embedding.word_embeddings.weight": (10, 4), "decoder.final_layernorm.weight": (4,)}


@pytest.mark.parametrize(
    ("checkpoint", "folder", "is_tied", "is_padded", "is_explained"),
    [
        (HF, HF, False, False, True),
        (HF, WITHOUT_HEAD, True, False, True),
        (HF, WITHOUT_HEAD, False, False, False),
        (WITHOUT_HEAD, HF, True, False, True),
        (WITHOUT_HEAD, HF, False, False, False),
        (MEGATRON, WITHOUT_HEAD, False, True, True),
        (MEGATRON, WITHOUT_HEAD, False, False, False),
        (MEGATRON, HF, True, True, True),
        (WITHOUT_HEAD, MEGATRON, False, True, False),
        (HF, {**HF, "extra": (1,)}, True, True, False),
        ({}, HF, True, True, False),
        (HF, {}, True, True, False),
    ],
)
def test_counts_that_differ(
    checkpoint: dict[str, tuple[int, ...]],
    folder: dict[str, tuple[int, ...]],
    is_tied: bool,
    is_padded: bool,
    is_explained: bool,
) -> None:
    fault, told = compared(
        counted_of(checkpoint.items()),
        counted_of(folder.items()),
        is_tied=is_tied,
        is_padded=is_padded,
    )

    assert (fault == "") is is_explained
    assert bool(told) is (is_explained and checkpoint != folder)
