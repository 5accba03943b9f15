"""Every move on runs in a real engine's containers, and on one beside it, by commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from docker_box import DockerBox
from places import BareProcess, DetachedContainer, RemovedContainer

pytestmark = pytest.mark.engine


def test_docker_run_rm(docker_box: DockerBox, tmp_path: Path) -> None:
    import time
    t = time.monotonic()
    def lap(w):
        print(f"{time.monotonic()-t:6.1f} {w}", flush=True)
    run = RemovedContainer(docker_box, tmp_path)
    run.start()
    run.wait_for_checkpoint(4)
    lap("started")
    found = run.box.the_run()
    lap("found")
    print(found)
    print(run.box.milepost("resume", "--dry-run").stdout)
    lap("dry")
    r = run.outcome("save"); lap("saved"); print(r)
    r = run.outcome("resume"); lap("resumed"); print(r)
    print(run.logs, run.containers, len(run.drivers()))
    r = run.outcome("convert"); lap("conv"); print(r)
    run.kill()
    lap("killed")
    r = run.outcome("resume", "run-a"); lap("resumed"); print(r)
    r = run.outcome("stop", "--no-save-first"); lap("stopped"); print(r)
    r = run.outcome("rollback", "4"); lap("rolled"); print(r)
    r = run.outcome("convert", "4"); lap("conv"); print(r)
    r = run.outcome("resume"); lap("resumed"); print(r)
