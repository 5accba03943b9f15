"""`milepost checkpoints` and `milepost verify` on folders without a run."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tui.cli import run
from tui.errors import ExitCode


@pytest.fixture
def folder(data: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(data / "captures" / "ckpt-run-a", tmp_path / "ckpt"))


def flip(path: Path, offset: int) -> None:
    """One bit, and the times of the file as they were: rot, not a write."""
    times = path.stat()
    content = bytearray(path.read_bytes())
    content[offset] ^= 4
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_a_folder_is_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["checkpoints", str(folder)]) == ExitCode.WELL
    told = capsys.readouterr().out

    assert "a restart loads 4 and begins at rollout 4" in told
    assert told.count("whole") == 2


def test_a_folder_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["checkpoints", "--json", str(folder)])
    document = json.loads(capsys.readouterr().out)

    assert document["would_load"]["iteration"] == 4
    assert [each["iteration"] for each in document["tree"]["value"]["checkpoints"]] == [4, 2]


def test_a_flipped_bit_is_named_and_remembered(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", str(folder), "--all"]) == ExitCode.WELL
    flip(folder / "iter_0000004" / "optimizer" / "__0_0.distcp", 500_000)
    assert run(["verify", str(folder / "iter_0000004")]) == ExitCode.ENDED_BADLY
    told = capsys.readouterr().out
    assert "optimizer/__0_0.distcp" in told
    assert "checksum" in told

    assert run(["checkpoints", str(folder)]) == ExitCode.DEGRADED
    assert "it is damaged" in capsys.readouterr().out


def test_a_change_voids_what_was_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shard = folder / "iter_0000004" / "model" / "__0_0.distcp"
    whole, times = shard.read_bytes(), shard.stat()
    flip(shard, 300_000)
    run(["verify", str(folder / "iter_0000004")])
    capsys.readouterr()
    shard.write_bytes(whole)
    os.utime(shard, ns=(times.st_atime_ns, times.st_mtime_ns + 1_000_000))

    run(["checkpoints", str(folder)])
    assert "damaged" not in capsys.readouterr().out


def test_a_verify_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--json", "--shallow", str(folder / "iter_0000004")]) == ExitCode.WELL
    (result,) = json.loads(capsys.readouterr().out)["results"]

    assert (result["subject"], result["is_shallow"]) == ("checkpoint", True)


def test_the_base_models_folder_is_sound(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(data / "captures" / "hf-origin")]) == ExitCode.WELL
    assert "Hugging Face folder" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["verify", "/nowhere"], ExitCode.NOTHING_FOUND),
        (["checkpoints", "/nowhere"], ExitCode.USAGE),
    ],
)
def test_what_is_not_there(
    argv: list[str], code: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(argv) == code
    assert "/nowhere" in capsys.readouterr().err
