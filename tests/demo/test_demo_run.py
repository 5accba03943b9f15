"""What a simulated run does from start to end: numbers, checkpoints, resume, the save trigger."""

from __future__ import annotations

import json
import os
import subprocess
from itertools import chain
from pathlib import Path

import pytest
from demo_runs import FinishedRun, command, plain_run, run_demo

from tui.demo import settings

SHORT = ("--eval-interval", "0")


def seeded(run: FinishedRun, kind: str) -> list[tuple[int, dict[str, object]]]:
    """Metrics without the measured times, which no seed fixes."""
    return [
        (
            number,
            {
                name: value
                for name, value in metrics.items()
                if not (name.startswith("perf/") and name.endswith(("_time", "_ratio")))
                and "tflops" not in name
                and "tok_per_s" not in name
            },
        )
        for number, metrics in run.metrics(kind)
    ]


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def checkpoint_files(iteration: int) -> set[str]:
    folder = f"iter_{iteration:07d}"
    parts = ("model", "optimizer", "lr_scheduler")
    return {f"{folder}/{part}/{name}" for part in parts for name in (".metadata", "__0_0.distcp")}


def whole(iteration: int) -> set[str]:
    folder = f"iter_{iteration:07d}"
    return checkpoint_files(iteration) | {
        f"{folder}/rng.pt",
        f"{folder}/meta.json",
        f"rollout/global_dataset_state_dict_{iteration - 1}.pt",
    }


def test_a_run_ends_well_and_numbers_its_steps() -> None:
    run = plain_run()

    assert run.code == 0
    assert [number for number, _ in run.metrics("step")] == list(range(8))
    assert [number for number, _ in run.metrics("rollout")] == list(range(4))
    assert [number for number, _ in run.metrics("perf")] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert "' succeeded\x1b[39m" in run.log


def test_the_seed_decides_every_metric_that_is_not_measured(tmp_path: Path) -> None:
    argv = ("--num-rollout", "4", "--save-interval", "0", "--eval-interval", "3")
    same = run_demo(tmp_path / "same", *argv)
    other = run_demo(tmp_path / "other", *argv, "--seed", "1")

    for kind in ("step", "rollout", "perf", "eval"):
        assert seeded(same, kind) == seeded(plain_run(), kind)
        assert seeded(other, kind) != seeded(plain_run(), kind)


def test_a_run_leaves_the_tree_miles_leaves(data: Path) -> None:
    captured = files(data / "captures/ckpt-run-a")

    ours = files(plain_run().checkpoints)

    assert ours == captured
    assert ours == whole(2) | whole(4) | {"latest_checkpointed_iteration.txt"}
    assert (plain_run().checkpoints / "latest_checkpointed_iteration.txt").read_bytes() == b"4"


def test_meta_json_has_miles_keys(data: Path) -> None:
    path = "iter_0000004/meta.json"
    captured = json.loads((data / "captures/ckpt-run-a" / path).read_text())

    text = (plain_run().checkpoints / path).read_text()

    assert json.loads(text).keys() == captured.keys()
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True)
    assert json.loads(text)["next_rollout_id"] == 4


def test_a_second_run_goes_on_where_the_first_saved(tmp_path: Path) -> None:
    run_demo(tmp_path, *SHORT, "--num-rollout", "3", "--save-interval", "2")
    resumed = run_demo(tmp_path, *SHORT, "--num-rollout", "5", "--save-interval", "2")
    unbroken = run_demo(tmp_path / "unbroken", *SHORT, "--num-rollout", "5")

    loaded = tmp_path / "checkpoints/iter_0000003"
    for line in (
        f"[FSDP] Loaded model from {loaded}/model",
        f"[FSDP] Loaded optimizer from {loaded}/optimizer",
        f"[FSDP] Loaded LR scheduler from {loaded}/lr_scheduler",
        f"load metadata from {tmp_path}/checkpoints/rollout/global_dataset_state_dict_2.pt",
    ):
        assert line in resumed.log
    assert [number for number, _ in resumed.metrics("step")] == [6, 7, 8, 9]
    assert seeded(resumed, "step") == seeded(unbroken, "step")[6:]
    assert files(tmp_path / "checkpoints") >= whole(5)


def test_without_a_tracker_a_run_starts_at_0_and_hardly_says_so(tmp_path: Path) -> None:
    run_demo(tmp_path, *SHORT, "--num-rollout", "2")
    fresh = run_demo(tmp_path, *SHORT, "--num-rollout", "2", "--fault", "fresh-start")

    assert fresh.code == 0
    assert [number for number, _ in fresh.metrics("step")] == [0, 1, 2, 3]
    assert "/latest_checkpointed_iteration.txt; skipping load." in fresh.log
    assert "Detected an existing checkpoint" in fresh.log


def test_an_empty_tracker_fails_the_start(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints/latest_checkpointed_iteration.txt").touch()

    failed = run_demo(tmp_path, *SHORT)

    assert failed.code == 1
    assert "ValueError: invalid literal for int()" in failed.log


def test_a_checkpoint_whose_index_is_gone_fails_the_start(tmp_path: Path) -> None:
    run_demo(tmp_path, *SHORT, "--num-rollout", "1")
    (tmp_path / "checkpoints/iter_0000001/optimizer/.metadata").unlink()

    failed = run_demo(tmp_path, *SHORT)

    assert failed.code == 1
    assert "CheckpointException" in failed.log


def test_without_meta_json_the_weights_load_and_the_count_starts_at_0(tmp_path: Path) -> None:
    run_demo(tmp_path, *SHORT, "--num-rollout", "2")
    (tmp_path / "checkpoints/iter_0000002/meta.json").unlink()

    again = run_demo(tmp_path, *SHORT, "--num-rollout", "1")

    assert "[FSDP] Loaded model from" in again.log
    assert [number for number, _ in again.metrics("step")] == [0, 1]


def test_the_save_trigger_is_obeyed_and_removed_after_everything_is_on_disk(
    tmp_path: Path,
) -> None:
    trigger = tmp_path / "please-save"
    trigger.touch()
    argv = (*SHORT, "--num-rollout", "2", "--save-interval", "0")

    run = run_demo(tmp_path, *argv, "--save-trigger-sentinel", str(trigger))

    assert not trigger.exists()
    assert files(tmp_path / "checkpoints") == whole(1) | {"latest_checkpointed_iteration.txt"}
    assert run.log.count("[FSDP] Saved checkpoint to") == 1


def test_the_save_trigger_is_removed_last(tmp_path: Path) -> None:
    """Killed after the whole save, the run leaves the trigger: its removal comes after."""
    trigger = tmp_path / "save-now"
    trigger.touch()

    run = run_demo(tmp_path, *SHORT, "--save-interval", "0", "--fault", "save-killed-8@0")

    assert run.code == -9
    assert files(tmp_path / "checkpoints") >= whole(1)
    assert trigger.exists()


def test_a_folder_in_the_triggers_place_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "save-now").mkdir()

    run = run_demo(tmp_path, *SHORT)

    assert run.code == 1
    assert "IsADirectoryError" in run.log


def test_no_interval_and_no_trigger_means_no_save(tmp_path: Path) -> None:
    run_demo(tmp_path, *SHORT, "--num-rollout", "2", "--save-interval", "0")

    assert not (tmp_path / "checkpoints").exists()


def test_the_box_is_a_gb10(tmp_path: Path) -> None:
    run_demo(tmp_path, *SHORT, "--num-rollout", "1")

    meminfo = (tmp_path / "meminfo").read_text()
    gpu = json.loads((tmp_path / "gpu.json").read_text())

    assert meminfo.startswith("MemTotal:       127600748 kB\n")
    [device] = gpu["devices"]
    assert device["name"] == "NVIDIA GB10"
    assert device["unified"] is True
    assert 0.0 <= device["utilisation_ratio"] <= 1.0


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--fault", "nonsense"), b"no fault 'nonsense'"),
        (("--fault", "nan@x"), b"a rollout is a number"),
        (("--speed", "0"), b"above 0"),
        (("--num-rollouts", "3"), b"unrecognized arguments"),
    ],
)
def test_a_wrong_command_line_is_refused(
    tmp_path: Path, argv: tuple[str, ...], said: bytes
) -> None:
    done = subprocess.run(
        command(tmp_path, *argv, speed=1), capture_output=True, check=False, timeout=60
    )

    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize("joined", [False, True])
def test_miles_own_flags_are_understood(joined: bool) -> None:
    pairs = (
        ("--save", "/ckpt/run-a"),
        ("--load", "/ckpt/run-b"),
        ("--save-interval", "20"),
        ("--num-rollout", "300"),
        ("--save-trigger-sentinel", "/ckpt/run-a.save-now"),
        ("--hf-checkpoint", "/models/q"),
    )
    flags = [f"{name}={value}" for name, value in pairs] if joined else [*chain(*pairs)]

    understood = settings.parsed([*flags, "--use-fault-tolerance", "--colocate"])

    assert understood.directory == Path("/ckpt")
    assert (understood.save, understood.load) == (Path("/ckpt/run-a"), Path("/ckpt/run-b"))
    assert (understood.save_interval, understood.num_rollout) == (20, 300)
    assert understood.save_trigger == Path("/ckpt/run-a.save-now")
    assert understood.hf_checkpoint == "/models/q"
    assert understood.fault_tolerance
    assert settings.parsed(understood.miles_argv()) == understood


def test_the_demo_stands_alone() -> None:
    """Nothing but the standard library, and nothing of the rest of milepost."""
    code = (
        "import sys, tui.demo.__main__, tui.demo.launch, tui.demo.engine, tui.demo.router\n"
        "import tui.demo.convert\n"
        "print(*sorted(n for n in sys.modules if n.startswith('tui')))\n"
        "print(*sorted({n.partition('.')[0] for n in sys.modules} - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run(
        [*command(Path(), speed=1)[:1], "-Ic", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env={"PATH": os.environ["PATH"]},
    )
    own, foreign = done.stdout.splitlines()

    assert set(own.split()) - {"tui"} == {n for n in own.split() if n.startswith("tui.demo")}
    assert {name for name in foreign.split() if not name.startswith("_")} <= {"tui"}
