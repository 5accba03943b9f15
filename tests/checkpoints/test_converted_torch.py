"""A conversion by real torch, which behaves as Miles' converter does, and what it is worth."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import conversions
import pytest
from conversions import Ran

from tui.demo import safetensors
from tui.demo.torchzip import Tensor

pytestmark = pytest.mark.torch

HEAD = "lm_head.weight"


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="needs the torch extra")


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    return conversions.origin(tmp_path)


def converted(folder: Path, origin: Path) -> Ran:
    stand_in = conversions.TESTS / "converters" / "torch_fsdp.py"
    program = (sys.executable, "-u", str(stand_in))
    ran = conversions.run(conversions.plan(folder, origin, program=program), folder)
    assert ran.code == 0, ran.text
    return ran


@pytest.mark.usefixtures("torch")
def test_a_checkpoint_of_a_real_run(tmp_path: Path, data: Path) -> None:
    shutil.copytree(data / "captures/ckpt-run-a", tmp_path / "run-a")
    ran = converted(tmp_path / "run-a/iter_0000004", data / "captures/hf-origin")
    proof = ran.proof()

    assert proof.ok, (proof.faults, ran.text)
    assert proof.line == "139,648 parameters arrived, 25 keys matched, 1 shard whole, all finite"
    assert ran.printed.found == ran.conversion.tensors


def test_the_demos_checkpoint_and_its_values(tmp_path: Path, origin: Path, torch: Any) -> None:
    ran = converted(conversions.fsdp_checkpoint(tmp_path), origin)
    raw = (ran.output / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    begin, end = header["model.norm.weight"]["data_offsets"]
    found = torch.frombuffer(bytearray(raw[start + begin : start + end]), dtype=torch.bfloat16)
    saved = dict(conversions.model().tensors(20))["model.norm.weight"]
    wanted = torch.frombuffer(bytearray(saved.raw), dtype=torch.float32).to(torch.bfloat16)

    assert ran.proof().ok, ran.proof().faults
    assert torch.equal(found, wanted)


@pytest.mark.usefixtures("torch")
def test_keys_that_torch_finds_missing_end_with_0_and_prove_nothing(
    tmp_path: Path, origin: Path
) -> None:
    """A base model with a layer more than the checkpoint: that layer stays random."""
    weights = {name: safetensors.as_bfloat16(t) for name, t in conversions.model().tensors(0)}
    weights["model.layers.2.mlp.up_proj.weight"] = Tensor(bytes(128), (8, 8), "bfloat16")
    safetensors.write(origin / "model.safetensors", weights)
    ran = converted(conversions.fsdp_checkpoint(tmp_path), origin)
    proof = ran.proof()

    assert not proof.ok
    assert proof.faults == (
        "keys of the model without a weight, 1: model.layers.2.mlp.up_proj.weight",
        "139,712 parameters in it, 139,648 in the checkpoint",
    )


@pytest.mark.usefixtures("torch")
def test_a_tied_head_is_counted_once(tmp_path: Path, origin: Path) -> None:
    config = json.loads((origin / "config.json").read_text())
    (origin / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": True}))
    proof = converted(conversions.fsdp_checkpoint(tmp_path), origin).proof()

    assert proof.ok, proof.faults
    assert proof.notes == ("its head is its embedding, counted once",)


@pytest.mark.usefixtures("torch")
def test_a_run_that_diverged_is_not_proven(tmp_path: Path, origin: Path) -> None:
    folder = conversions.fsdp_checkpoint(tmp_path)
    shard = folder / "model" / "__0_0.distcp"
    raw = dict(conversions.model().tensors(20))["model.norm.weight"].raw
    held = shard.read_bytes()
    assert held.count(bytes(raw)) == 1
    shard.write_bytes(held.replace(bytes(raw), b"\0\0\xc0\x7f" + bytes(raw[4:])))
    proof = converted(folder, origin).proof()

    assert proof.faults == ("model.safetensors: model.norm.weight: 1 of 64 numbers are nan or inf",)
