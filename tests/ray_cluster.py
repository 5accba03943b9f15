"""A Ray cluster of one node in a box of its own."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from box import Box, opened_box

RAY = Path(sys.executable).with_name("ray")
ADDRESS = ("--address", "http://127.0.0.1:8265")


@contextmanager
def opened_cluster(folder: Path) -> Iterator[Box]:
    """A box with a cluster, its `/tmp/ray` empty before and gone after; else a skip."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("needs the ray extra")
    place = Path("/tmp/ray")
    place.mkdir(exist_ok=True)
    (folder / "ray").mkdir()
    with opened_box() as box:
        mounted = box.run("mount", "--bind", folder / "ray", place)
        assert mounted.returncode == 0, mounted.stderr
        started = box.run(
            *(RAY, "start", "--head", "--node-ip-address=127.0.0.1", "--num-cpus=2"),
            "--disable-usage-stats",
        )
        assert started.returncode == 0, started.stdout + started.stderr
        yield box
    if not any(place.iterdir()):
        place.rmdir()
