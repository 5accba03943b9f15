"""Roles of processes by their command lines, and look-alikes that have none."""

from __future__ import annotations

import pytest

from tui.miles.secrets import MASK
from tui.miles.titles import Role, is_spawned, role_of, title_of


@pytest.mark.parametrize(
    ("argv", "role"),
    [
        (("python3", "/root/miles/train.py", "--save", "/ckpt"), Role.DRIVER),
        (("/usr/bin/python3.12", "-u", "-X", "dev", "train_async.py"), Role.DRIVER),
        (("python", "-m", "tui.demo", "--seed", "1"), Role.DRIVER),
        (("python", "scripts/run_qwen3_4b.py"), Role.LAUNCHER),
        (("/opt/venv/bin/python3", "/opt/venv/bin/ray", "job", "submit", "--"), Role.LAUNCHER),
        (("ray::FSDPTrainRayActor.train",), Role.TRAINER),
        (("ray::MegatronTrainRayActor",), Role.TRAINER),
        (("ray::RolloutManager.generate",), Role.ROLLOUT_MANAGER),
        (("ray::SGLangEngine",), Role.ENGINE),
        (("sglang::scheduler_TP0",), Role.SCHEDULER),
        (("sglang::detokenizer", "", ""), Role.DETOKENIZER),
        (("sglang::router",), Role.ROUTER),
        (("miles-router",), Role.ROUTER),
        (("python", "-m", "tui.demo.engine"), Role.ENGINE),
        (("python", "-m", "tui.demo.router"), Role.ROUTER),
        (("ray::IDLE",), Role.RAY),
        (("ray::JobSupervisor",), Role.RAY),
        (("/x/ray/core/src/ray/raylet/raylet", "--port=1"), Role.RAY),
        (("/x/ray/core/src/ray/gcs/gcs_server", "--port=1"), Role.RAY),
        (("python", "-u", "/x/site-packages/ray/dashboard/dashboard.py"), Role.RAY),
        (("python", "-u", "/x/site-packages/ray/_private/log_monitor.py"), Role.RAY),
    ],
)
def test_roles(argv: tuple[str, ...], role: Role) -> None:
    assert role_of(argv) is role


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("",),
        ("vim", "train.py"),
        ("grep", "ray::SGLangEngine"),
        ("tail", "-f", "train.py.log"),
        ("/bin/sh", "-c", "python3 /root/miles/train.py --save /ckpt"),
        ("python3", "pretrain.py"),
        ("python3", "tool.py", "train.py"),
        ("python3", "-c", "import train"),
        ("python3",),
        ("python", "-m", "tui.demo.box"),
        ("python", "/opt/venv/bin/ray", "start", "--head"),
        ("milepost", "demo"),
    ],
)
def test_look_alikes_have_no_role(argv: tuple[str, ...]) -> None:
    assert role_of(argv) is None


def test_a_spawned_child_is_known_as_one() -> None:
    code = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=1)"
    assert is_spawned(("python3", "-c", code, "--multiprocessing-fork"))
    assert not is_spawned(("python3", "-c", "print('multiprocessing')"))


def test_a_title_is_short_and_holds_no_secret() -> None:
    title = title_of(("python3", "train.py", "--wandb-key", "abcdef", *["--x"] * 500))
    assert title.startswith(f"python3 train.py --wandb-key {MASK} --x")
    assert len(title) <= 200
