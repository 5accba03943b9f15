"""Against real torch: what it wrote is sound, and what it reads wrongly after damage is named."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from damage import Reader, Score, campaign, table

from tui.checkpoints.verify import verify
from tui.model.checkpoint import Soundness

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning"),
]
RANKS = 2


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="needs the torch extra")


@pytest.fixture(scope="module")
def written(torch: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parts that two processes wrote together."""
    root = tmp_path_factory.mktemp("ranks")
    program = Path(__file__).with_name("torch_ranks.py")
    words = [sys.executable, str(program), str(root), str(RANKS)]
    ranks = [
        subprocess.Popen([*words, str(rank), str(root / "rendezvous")]) for rank in range(RANKS)
    ]
    assert [rank.wait(timeout=300) for rank in ranks] == [0] * RANKS
    return root


@pytest.mark.parametrize("part", ["mixed", "model", "optimizer", "grid", "threads"])
def test_what_several_processes_wrote_is_sound(written: Path, part: str) -> None:
    result = verify(written / part)

    assert result.faults == ()
    assert result.verification is not None
    assert result.verification.soundness is Soundness.SOUND


def test_files_of_torch_save_with_and_without_checksums(torch: Any, tmp_path: Path) -> None:
    value = {
        "a": torch.arange(300_000.0),
        "b": torch.full((3,), float("nan"), dtype=torch.bfloat16),
        "c": torch.tensor([1.0, float("inf")], dtype=torch.float16),
        "empty": torch.empty(0),
    }
    for name, is_summed, wanted in (
        ("with.pt", True, Soundness.NOT_FINITE),
        ("without.pt", False, Soundness.NOT_FINITE),
    ):
        torch.serialization.set_crc32_options(is_summed)
        try:
            torch.save(value, tmp_path / name)
            torch.save(torch.ones(4), tmp_path / f"finite-{name}")
        finally:
            torch.serialization.set_crc32_options(True)
        result = verify(tmp_path / name)
        assert result.faults == ()
        assert result.verification is not None
        assert result.verification.soundness is wanted
        assert result.verification.non_finite == 4

        finite = verify(tmp_path / f"finite-{name}").verification
        assert finite is not None
        assert finite.soundness is (Soundness.SOUND if is_summed else Soundness.NO_SUMS)


def test_no_damage_is_missed(
    torch: Any, data: Path, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small campaign; `python tests/damage.py` runs a larger one."""
    monkeypatch.setenv("XDG_STATE_HOME", os.fspath(tmp_path))
    captures, scores = data / "captures", dict[str, Score]()
    trees = {
        "run": (captures / "ckpt-run-a/iter_0000004", captures / "ckpt-run-a/iter_0000002"),
        "ranks": (written / "model", written / "grid"),
    }
    if importlib.util.find_spec("safetensors"):
        trees["hf"] = (captures / "hf-origin", captures / "hf-origin")
    draw, reader = random.Random(7), Reader()
    for name, (folder, older) in trees.items():
        copy = tmp_path / name / folder.name
        shutil.copytree(folder, copy)
        (tmp_path / name / "state").mkdir()
        campaign(
            copy, older, tmp_path / name / "state", scores, reader, flips=12, cuts=3, draw=draw
        )
    reader.close()

    print(table(scores))
    assert sum(score.tried for score in scores.values()) > 250
    assert [told for score in scores.values() for told in score.missed_again] == []
    missed = [told for score in scores.values() for told in score.missed_first]
    assert [told for told in missed if not is_beyond_the_first(told)] == []


def is_beyond_the_first(told: str) -> bool:
    """What bytes alone cannot tell: formats without checksums, and a sound file of another save."""
    return told.endswith(": swapped") or ".json: bit" in told or ".safetensors: " in told


def test_files_of_the_safetensors_library(torch: Any, tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.torch", reason="needs the torch extra")
    tensors = {
        "f32": torch.arange(300_000.0).reshape(300, 1000),
        "bf16": torch.ones(7, dtype=torch.bfloat16),
        "f16": torch.zeros(5, dtype=torch.float16),
        "f8": torch.ones(3).to(torch.float8_e4m3fn),
        "i64": torch.arange(9),
        "flags": torch.ones(3, dtype=torch.bool),
        "scalar": torch.tensor(1.0),
        "empty": torch.empty(0, 4),
    }
    library.save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    first = verify(tmp_path / "model.safetensors")
    assert (first.faults, first.unread) == ((), ())
    assert first.verification is not None
    assert first.verification.soundness is Soundness.NO_SUMS

    tensors["bf16"][3] = float("nan")
    tensors["f16"][:2] = float("inf")
    library.save_file(tensors, tmp_path / "diverged.safetensors")
    diverged = verify(tmp_path / "diverged.safetensors").verification
    assert diverged is not None
    assert (diverged.soundness, diverged.non_finite) == (Soundness.NOT_FINITE, 3)
