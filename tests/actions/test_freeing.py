"""Ports and memory are waited for until really free, and their holders are named."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from fake_box import NO_GPU, NOW, discrete_gpu, gpu, memory, processes, report, router
from fakes import running
from families import Families, until

from tui.actions.freeing import (
    RAY_PORTS,
    Freed,
    Holder,
    Wanted,
    available_after,
    holders,
    ports_of,
    wait_until_free,
)
from tui.actions.ownership import Owner, is_orphan, owner_of
from tui.actions.process_table import ProcessRow, Table, read_table
from tui.actions.signals import target_of
from tui.actions.sockets import Listener, listeners
from tui.model.gpu import GpuProcess, GpuReport
from tui.model.launch import ProcessTree
from tui.model.memory import GIB
from tui.model.reading import Reading, known
from tui.model.snapshot import Snapshot
from tui.model.target import ProcessTarget

NOBODY = 2**22 + 1
"""A pid that no process has."""


def row(pid: int, parent: int, group: int | None = None, name: str = "p") -> ProcessRow:
    return ProcessRow(
        pid=pid, name=name, state="S", parent=parent, group=pid if group is None else group,
        session=pid, threads=1, start_ticks=pid,
    )  # fmt: skip


def table(*rows: ProcessRow) -> Table:
    return {each.pid: each for each in (row(1, 0), *rows)}


def target(pid: int) -> ProcessTarget:
    return ProcessTarget(pid=pid, start_ticks=pid, boot_id="b")


class TestOwner:
    RUN = (target(100), target(101))

    def owner(self, pid: int, *rows: ProcessRow) -> Owner:
        return owner_of(pid, table(*rows), self.RUN)

    def test_of_the_run_and_of_what_is_below_it(self) -> None:
        assert self.owner(100, row(100, 1)) is Owner.RUN
        assert self.owner(300, row(100, 1), row(200, 100), row(300, 200)) is Owner.RUN

    def test_the_dead_hold_under_their_pid(self) -> None:
        assert self.owner(101) is Owner.RUN

    def test_a_pid_given_to_another_is_not_the_run(self) -> None:
        other = replace(row(101, 50), start_ticks=999)
        assert self.owner(101, row(50, 1), other) is Owner.NEIGHBOUR

    def test_one_that_something_else_stands_behind(self) -> None:
        assert self.owner(300, row(50, 1), row(300, 50, 50)) is Owner.NEIGHBOUR

    def test_one_that_may_not_be_seen_and_one_that_nobody_owns(self) -> None:
        assert self.owner(0) is Owner.UNKNOWN
        assert self.owner(300, row(300, 1, 299)) is Owner.UNKNOWN


class TestOrphan:
    @pytest.mark.parametrize(
        ("rows", "orphan"),
        [
            ((row(300, 1, 299),), True),
            ((row(300, 1, 300),), False),  # started by itself, left alone on purpose
            ((row(300, 1, 300, "ray::FSDPTrainR"),), True),
            ((row(300, 1, 299), row(299, 50)), False),  # who leads its group lives
            ((row(300, 1, 299), replace(row(299, 50), state="Z")), True),
            ((row(300, 50, 299), row(50, 1)), False),
            ((row(300, 40, 299), row(40, 1, 40, "systemd")), True),
            ((), False),
        ],
    )
    def test_nobody_stands_behind_it(self, rows: Sequence[ProcessRow], orphan: bool) -> None:
        assert is_orphan(300, table(*rows)) is orphan


class TestPorts:
    def test_who_listens(self) -> None:
        with (
            socket.create_server(("127.0.0.1", 0)) as four,
            socket.socket(socket.AF_INET) as unused,
        ):
            unused.bind(("127.0.0.1", 0))
            port, silent = four.getsockname()[1], unused.getsockname()[1]
            assert listeners({port, silent}) == (Listener(port=port, pid=os.getpid()),)
        assert listeners({port}) == ()

    def test_over_ipv6_and_twice(self) -> None:
        try:
            six = socket.create_server(("::1", 0), family=socket.AF_INET6)
        except OSError:
            pytest.skip("no IPv6 here")
        with six, socket.create_server(("127.0.0.1", six.getsockname()[1])):
            port = six.getsockname()[1]
            assert listeners({port}) == (Listener(port=port, pid=os.getpid()),)

    def test_another_users(self) -> None:
        if os.geteuid() != 0:
            pytest.skip("needs root to be two users")
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            script = (
                "import encodings.ascii, os, sys; from tui.actions.sockets import listeners; os.setuid(65534)\n"
                "print([each.pid for each in listeners({int(sys.argv[1])})])"
            )
            told = subprocess.run(
                [sys.executable, "-c", script, str(port)],
                capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=300,
            )  # fmt: skip
        assert (told.stdout.strip(), told.stderr) == ("[0]", "")

    def test_those_of_a_run(self) -> None:
        assert ports_of(Snapshot()) == ()
        assert ports_of(running(processes=NO_GPU)) == (3912, 15000)
        ray = replace(processes().processes[0], role="ray")
        tree = known(ProcessTree(processes=(ray,)), NOW)
        ports = ports_of(running(processes=tree, router=replace(router(), url="http://h:4100")))
        assert set(ports) >= {*RAY_PORTS, 4100, 15000}


def gpus(*held: tuple[int, int]) -> Reading[GpuReport]:
    running_on = tuple(
        GpuProcess(pid=pid, memory_bytes=known(size * GIB, NOW)) for pid, size in held
    )
    return known(report(gpu(processes=known(running_on, NOW))), NOW)


class TestHolders:
    def test_ports_and_memory(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            own = target_of(os.getpid())
            assert own is not None
            wanted = Wanted(ports=(port,), run=(own, target(NOBODY)))
            found = holders(wanted, gpus((NOBODY, 39), (os.getppid(), 2)), read_table())
        assert [(each.pid, each.holds, each.owner) for each in found] == [
            (os.getpid(), f"port {port}", Owner.RUN),
            (NOBODY, "39.0 GiB of GPU 0", Owner.RUN),
            (os.getppid(), "2.0 GiB of GPU 0", Owner.NEIGHBOUR),
        ]
        assert found[1].line == f"39.0 GiB of GPU 0 held by process {NOBODY} (this run)"

    def test_no_gpu_is_no_matter(self) -> None:
        assert holders(Wanted(), NO_GPU, read_table()) == ()

    def test_what_the_pool_should_have_left(self) -> None:
        seen = running()
        assert available_after(seen, [target(1)]) == 0
        after = available_after(seen, [target(4242), target(4243)])
        assert after == memory().available_bytes + int(
            0.9 * sum((int(39.2 * GIB), int(18.9 * GIB)))
        )
        discrete = replace(seen, gpus=known(report(discrete_gpu()), NOW))
        assert available_after(discrete, [target(4242)]) == 0


ANYTHING = Wanted()


class Fake:
    def __init__(self, *looks: Sequence[Holder], available_gib: Sequence[float] = (100.0,)) -> None:
        self.looks = list(looks)
        self.available = list(available_gib)
        self.now = 0.0

    def held(self, *_: object) -> Sequence[Holder]:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def pause(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, wanted: Wanted = ANYTHING) -> Freed:
        def pool() -> Reading[object]:
            left = self.available.pop(0) if len(self.available) > 1 else self.available[0]
            return known(memory(available_bytes=int(left * GIB)), NOW)

        return wait_until_free(
            wanted, gpus=gpus, memory=pool, deadline_s=10.0,  # type: ignore[arg-type]
            held_now=self.held, clock=lambda: self.now, pause=self.pause,
        )  # fmt: skip


OURS = Holder(pid=7, title="sglang::scheduler", holds="port 15000", owner=Owner.RUN)
THEIRS = Holder(pid=8, title="jupyter", holds="2.1 GiB of GPU 0", owner=Owner.NEIGHBOUR)
NOBODYS = Holder(pid=0, title="", holds="port 15003", owner=Owner.UNKNOWN)


class TestWait:
    def test_free_at_once(self) -> None:
        freed = Fake(()).wait()
        assert (freed.is_free, freed.seconds, freed.line) == (True, 0.0, "free after 0.0 s")

    def test_until_it_is(self) -> None:
        freed = Fake((OURS, THEIRS), (NOBODYS, THEIRS), (THEIRS,)).wait()
        assert freed.is_free
        assert freed.holders == (THEIRS,)
        assert freed.seconds == pytest.approx(0.4)
        assert "2.1 GiB of GPU 0 held by process 8 jupyter (a neighbour)" in freed.line

    def test_never(self) -> None:
        freed = Fake((OURS, NOBODYS)).wait()
        assert not freed.is_free
        assert freed.line == (
            "not free in 10 s; port 15000 held by process 7 sglang::scheduler (this run); "
            "port 15003 held by another user's process (unknown)"
        )

    def test_memory_that_comes_back_late(self) -> None:
        wanted = Wanted(available_bytes=80 * GIB)
        assert Fake((), available_gib=(20.0, 40.0, 81.0)).wait(wanted).is_free
        freed = Fake((), available_gib=(20.0, 41.0)).wait(wanted)
        assert not freed.is_free
        assert freed.line.endswith("39.0 GiB of memory did not come back")


def test_a_port_of_a_stopped_process_becomes_free(families: Families) -> None:
    script = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); time.sleep(1000)"
    process = families.start(sys.executable, "-c", script)
    assert process.stdout is not None
    port = int(process.stdout.readline())
    run = target_of(process.pid)
    assert run is not None
    wanted = Wanted(ports=(port,), run=(run,))
    looks: list[tuple[Holder, ...]] = []

    def look(wanted: Wanted, gpus: Reading[GpuReport], table: Table) -> tuple[Holder, ...]:
        looks.append(holders(wanted, gpus, table))
        os.kill(process.pid, signal.SIGKILL)
        return looks[-1]

    freed = wait_until_free(
        wanted, gpus=lambda: NO_GPU, memory=lambda: NO_GPU, held_now=look, deadline_s=30.0
    )
    assert freed.is_free
    assert [each.owner for each in looks[0]] == [Owner.RUN]
    until(lambda: listeners({port}) == ())
