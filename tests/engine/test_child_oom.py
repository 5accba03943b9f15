"""A process killed for memory inside a container that lives on: the flag is up, nothing has ended."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from children import release
from docker_box import DockerBox

from tui.model.events import ContainerRead
from tui.model.judge import judge
from tui.model.launch import Attachment, Container, Found
from tui.model.reading import Known, known
from tui.model.snapshot import Snapshot
from tui.probes.container import ContainerProbe

pytestmark = pytest.mark.engine


def seen_until(probe: ContainerProbe, name: str, *, status: str) -> Container:
    seen = Snapshot(attachment=Attachment(container=Found(value=name, source="--container")))
    deadline = time.monotonic() + 60.0
    while True:
        event, *_ = probe.read(time.time(), seen)
        assert isinstance(event, ContainerRead)
        reading = event.container
        if isinstance(reading, Known):
            container = reading.value
            if container.status == status and container.oom_killed:
                return container
        assert time.monotonic() < deadline, f"never came true: {reading}"
        time.sleep(0.05)


def test_the_flag_alone_is_no_end(docker_box: DockerBox, tmp_path: Path) -> None:
    if json.loads(docker_box.docker("info", "--format={{json .}}")).get("MemoryLimit") is not True:
        pytest.skip("this kernel does not limit a container's memory")
    os.mkfifo(tmp_path / "go")
    docker_box.docker(
        *docker_box.run_words(
            "--detach", "--name=run-g", "--memory=64m", f"--volume={tmp_path}:/ckpt"
        ),
        "/bin/sh", "-c",
        f"{sys.executable} -c 'bytearray(1 << 30)'; read line < /ckpt/go; exit 3",
    )  # fmt: skip
    probe = ContainerProbe()
    alive = seen_until(probe, "run-g", status="running")
    assert alive.exit_code is None
    codes = [alert.code for alert in judge(snapshot_of(alive)).alerts]
    release(tmp_path / "go")
    ended = seen_until(probe, "run-g", status="exited")
    probe.close()
    cause = judge(snapshot_of(ended)).cause

    assert "container-oom" in codes
    assert ended.exit_code == 3
    assert cause is not None
    assert cause.kind == "killed for memory"
    assert cause.line.startswith("a process in the container was killed for memory")


def snapshot_of(container: Container) -> Snapshot:
    now = time.time()
    return replace(Snapshot(now=now), container=known(container, now))
