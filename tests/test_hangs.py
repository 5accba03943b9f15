"""Sources that hang, under the real monitor in a real terminal: keys and the exit do not wait."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import logs
import psutil
import pytest
from answering import Server
from nvml.build import build, compiler
from terminal import Terminal

from tui.demo.launch import DemoRun, start

pytestmark = pytest.mark.pty

KEY_LIMIT_S = EXIT_LIMIT_S = 30.0
"""A source hangs for ever; how soon a key is answered beside it is for the bench."""
MILEPOST = (sys.executable, "-m", "tui")
BLOCKED_DISK = Path(__file__).parent / "blocked" / "blocked_disk.c"
CONTAINER_ID = "ab12" * 16
GB10 = {
    "driver": "580.126.09",
    "count": "1",
    "0.name": "NVIDIA GB10",
    "0.utilisation": "96",
    "0.power": "91500",
    "0.temperature": "71",
}


@dataclass
class Hang:
    """A source that will hang, and how its screen tells of it."""

    begin: Callable[[], object]
    told: tuple[str, ...]
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ("RUNNING",)
    """What stands on the screen while all is well."""


Make = Callable[[ExitStack, DemoRun, Path], Hang]


# Sources


def nvml(_: ExitStack, run: DemoRun, folder: Path) -> Hang:
    if compiler() is None:
        pytest.skip("needs gcc to compile the fake NVML library")
    answers = folder / "answers"

    def answer(**changes: str) -> None:
        lines = (f"{key} = {value}\n" for key, value in (GB10 | changes).items())
        answers.with_suffix(".new").write_text("".join(lines))
        answers.with_suffix(".new").replace(answers)

    answer()
    return Hang(
        begin=lambda: answer(**{"0.utilisation": "hang"}),
        told=("96 %", "NVML has not answered for"),
        env={"LD_LIBRARY_PATH": str(build(folder).parent), "FAKE_NVML": str(answers)},
        before=("RUNNING", "NVIDIA GB10", "96 %"),
    )


def docker(stack: ExitStack, run: DemoRun, folder: Path) -> Hang:
    state = {"Status": "running", "Running": True, "StartedAt": "2026-11-29T12:00:00.1Z"}
    inspected = json.dumps({"Id": CONTAINER_ID, "Name": "/run-a", "State": state})
    containers = {f"/containers/{name}/json": inspected for name in ("run-a", CONTAINER_ID)}
    server = stack.enter_context(Server({"/version": '{"ApiVersion": "1.41"}', **containers}))
    return Hang(
        begin=server.fall_silent,
        told=("container: Docker did not answer within 3 s", "it was running"),
        argv=("--container", "run-a"),
        env={"DOCKER_HOST": f"tcp://{server.address}"},
        before=("RUNNING", "container run-a"),
    )


def engine(stack: ExitStack, run: DemoRun, folder: Path) -> Hang:
    server = stack.enter_context(Server({"/metrics": "sglang:num_running_reqs 0\n"}))
    return Hang(
        begin=server.fall_silent,
        told=(f"{server.address} answers nothing: no whole answer", "asked"),
        argv=("--engine", f"http://{server.address}"),
    )


def router(stack: ExitStack, run: DemoRun, folder: Path) -> Hang:
    """One that lags first: it calls an engine healthy where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        dead = f"http://127.0.0.1:{listener.getsockname()[1]}"
    workers = json.dumps({"workers": [{"id": "a", "url": dead, "is_healthy": True}]})
    server = stack.enter_context(Server({"/workers": workers}))
    now = time.strftime("%H:%M:%S", time.gmtime())
    log = folder / "routed.log"
    log.write_text(
        f"{logs.rollout(now, f'Router launched at {server.address}', 'router_manager.py:90')}\n"
        f"{logs.trainer(now, 'Timer train_wait start')}\n"
    )
    return Hang(
        begin=server.fall_silent,
        told=("router: no whole answer within 3 s",),
        argv=("--log", str(log)),
        before=(dead.removeprefix("http://"), "connection refused"),
    )


@contextmanager
def blocked_disk(folder: Path) -> Iterator[Mapping[str, str]]:
    if compiler() is None:
        pytest.skip("needs gcc to compile the blocked disk")
    library = folder / "blocked_disk.so"
    words = ("gcc", "-shared", "-fPIC", "-o", str(library), str(BLOCKED_DISK))
    subprocess.run(words, check=True, capture_output=True)
    yield {"LD_PRELOAD": str(library)}


def checkpoint_disk(stack: ExitStack, run: DemoRun, folder: Path) -> Hang:
    env = stack.enter_context(blocked_disk(folder))
    return Hang(
        begin=Path(f"{run.checkpoints}.blocked").touch,
        told=("checkpoints: no answer for", "no fresh look: no answer for"),
        env={**env, "BLOCKED_DISK": str(run.checkpoints)},
        before=("RUNNING", "resumes at rollout"),
    )


def log_disk(stack: ExitStack, run: DemoRun, folder: Path) -> Hang:
    env = stack.enter_context(blocked_disk(folder))
    return Hang(
        begin=Path(f"{run.log.parent}.blocked").touch,
        told=("log: no answer for",),
        env={**env, "BLOCKED_DISK": str(run.log.parent)},
    )


HANGS: dict[str, Make] = {
    "nvml": nvml,
    "docker": docker,
    "engine": engine,
    "router": router,
    "checkpoint disk": checkpoint_disk,
    "log disk": log_disk,
}


# What must hold


@pytest.fixture
def run(tmp_path: Path) -> Iterator[DemoRun]:
    run = start(tmp_path / "demo", speed=20.0, num_rollout=5000, save_interval=1)
    yield run
    run.stop()


def processes_with(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("MILEPOST_TEST") == mark:
                found.append(process)
    return found


def answers_a_key(terminal: Terminal) -> None:
    """The help comes and goes."""
    terminal.type("?")
    terminal.shows("Leave at once. The run goes on.", deadline_s=KEY_LIMIT_S)
    terminal.type("?")
    terminal.until(lambda text: "Leave at once." not in text, deadline_s=KEY_LIMIT_S)


def leaves_at_once(terminal: Terminal, mark: str) -> None:
    assert processes_with(mark)
    assert terminal.leave(deadline_s=EXIT_LIMIT_S) == 0
    assert terminal.is_clean
    assert processes_with(mark) == []


@pytest.mark.parametrize("source", HANGS)
def test_a_source_that_hangs_delays_neither_key_nor_exit(
    source: str, run: DemoRun, tmp_path: Path
) -> None:
    mark = uuid.uuid4().hex
    with ExitStack() as stack:
        hang = HANGS[source](stack, run, tmp_path)
        argv = (*MILEPOST, "--log", str(run.log), "--checkpoints", str(run.checkpoints))
        terminal = stack.enter_context(
            Terminal([*argv, *hang.argv], (160, 50), MILEPOST_TEST=mark, **hang.env)
        )
        terminal.shows(*hang.before)
        hang.begin()
        terminal.shows(*hang.told)
        answers_a_key(terminal)
        leaves_at_once(terminal, mark)
