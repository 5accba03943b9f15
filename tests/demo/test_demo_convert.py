"""The demo's own base model, and a checkpoint converted with nothing but the demo."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from demo_runs import plain_run, run_demo


def converted(checkpoint: Path, output: Path, origin: str) -> subprocess.CompletedProcess[str]:
    folders = ("--input-dir", checkpoint, "--output-dir", output, "--origin-hf-dir", origin)
    return subprocess.run(
        [sys.executable, "-m", "tui.demo.convert", *map(str, folders)],
        capture_output=True,
        text=True,
        timeout=300,
    )


def named_origin(log: str) -> str:
    found = re.search(r"--hf-checkpoint (\S+)", log)
    assert found is not None
    return found[1]


def test_a_run_names_a_base_model_that_is_there_and_whole() -> None:
    origin = Path(named_origin(plain_run().log))
    config = json.loads((origin / "config.json").read_text())

    assert sorted(path.name for path in origin.iterdir()) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert (config["vocab_size"], config["hidden_size"], config["head_dim"]) == (512, 64, 16)


def test_what_is_printed_and_written(tmp_path: Path) -> None:
    run = plain_run()
    done = converted(run.checkpoints / "iter_0000004", tmp_path / "x", named_origin(run.log))
    lines = done.stdout.splitlines()

    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0] == f"loading FSDP model from {run.checkpoints}/iter_0000004/model"
    assert sum(line.startswith("find model_state.model.") for line in lines) == 25
    assert re.fullmatch(r"FSDP model loaded in \d+\.\d\d sec\.", lines[26])
    assert lines[27:31] == [
        "Using prefix 'model_state.model.' for key mapping. Matched 25/25 parameter keys.",
        "Missing keys: []",
        "Unexpected keys: []",
        f"Model weights saved to {tmp_path}/x",
    ]
    assert all(line.startswith("copy from ") for line in lines[31:])
    assert (tmp_path / "x" / "tokenizer.json").exists()


def test_an_output_that_is_there_is_refused(tmp_path: Path) -> None:
    run = plain_run()
    done = converted(run.checkpoints / "iter_0000004", tmp_path, named_origin(run.log))

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ValueError: Output directory {tmp_path} already exists. Use --force to overwrite it."
    )


def test_the_save_folder_is_no_checkpoint(tmp_path: Path) -> None:
    done = converted(plain_run().checkpoints, tmp_path / "x", "/nowhere")

    assert done.stderr.splitlines()[-1].startswith("FileNotFoundError: ")
    assert "/.metadata" in done.stderr.splitlines()[-1]


def test_folders_of_the_origin_are_passed_over(tmp_path: Path) -> None:
    run = plain_run()
    origin = shutil.copytree(named_origin(run.log), tmp_path / "origin")
    (origin / ".cache").mkdir()
    done = converted(run.checkpoints / "iter_0000004", tmp_path / "x", str(origin))

    assert "Skip .cache, not a file." in done.stdout.splitlines()


def test_a_base_model_of_another_name_is_not_written(tmp_path: Path) -> None:
    run = run_demo(
        tmp_path, "--num-rollout", "1", "--save-interval", "0", "--hf-checkpoint", "/models/q"
    )

    assert named_origin(run.log) == "/models/q"
    assert not (tmp_path / "checkpoints-base").exists()


def test_a_second_run_leaves_the_base_model_as_it_is(tmp_path: Path) -> None:
    weights = tmp_path / "checkpoints-base" / "Qwen3-0.6B" / "model.safetensors"
    run_demo(tmp_path, "--num-rollout", "1", "--save-interval", "0")
    before = weights.stat()
    run_demo(tmp_path, "--num-rollout", "1", "--save-interval", "0")

    assert weights.stat().st_mtime_ns == before.st_mtime_ns
