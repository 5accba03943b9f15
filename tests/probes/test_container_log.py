"""A container's output copied: taken up again whatever happened, nothing twice, nothing left out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tui.model.events import LogUnreadable
from tui.model.launch import Attachment, Found
from tui.model.snapshot import Snapshot
from tui.probes import container_log
from tui.probes.container_log import ContainerLogProbe, place_of_end
from tui.runs.docker import DockerEngine

DEADLINE_S = 200.0


class FakeDocker(DockerEngine):
    """An engine whose streams end when it is told to, and whose oldest output may be dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.output = b""
        self.running = True
        self.fault: OSError | None = None
        self.opened = 0
        self._changed = threading.Condition()
        self._lost = 0

    def prints(self, text: bytes) -> None:
        with self._changed:
            self.output += text
            self._changed.notify_all()

    def drops(self, size: int) -> None:
        """Rotation: the oldest output goes; open streams end, as they do when files are removed."""
        self.loses_readers(dropped=size)

    def loses_readers(self, dropped: int = 0) -> None:
        with self._changed:
            self.output = self.output[dropped:]
            self._lost += 1
            self._changed.notify_all()

    def is_running(self, container_id: str, at: float) -> bool:
        return self.running

    def follow_logs(
        self, container_id: str, since: float, *, follow: bool = True
    ) -> Iterator[bytes]:
        if self.fault is not None:
            raise self.fault
        self.opened += follow
        place, lost = 0, self._lost
        while True:
            with self._changed:
                while follow and len(self.output) <= place and self._lost == lost:
                    self._changed.wait(30.0)
                if self._lost != lost:
                    if not follow:
                        raise ConnectionError("cut short")
                    return
                piece = self.output[place : place + 7]
                if not piece:
                    return
            place += len(piece)
            yield piece


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_log, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(container_log, "LONGEST_PAUSE_S", 0.01)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, "never came true"
        time.sleep(0.001)


class Copying:
    """A probe that copies to a file."""

    def __init__(self, docker: FakeDocker, copy: Path) -> None:
        self.copy = copy
        self.probe = ContainerLogProbe(lambda _: copy, docker)
        found = Found(value="ab12", source="test")
        log = Found(value=str(copy), source="test")
        self.seen = Snapshot(attachment=Attachment(container=found, log=log))
        self.events = self.probe.read(0.0, self.seen)

    def holds(self, text: bytes) -> None:
        until(lambda: self.copy.exists() and self.copy.read_bytes() == text)


def test_a_lost_reader_is_opened_again_and_nothing_is_doubled(tmp_path: Path) -> None:
    docker = FakeDocker()
    copying = Copying(docker, tmp_path / "output" / "copy.log")
    docker.prints(b"one\ntwo\n")
    copying.holds(b"one\ntwo\n")
    docker.loses_readers()
    docker.prints(b"three\n")
    copying.holds(b"one\ntwo\nthree\n")
    docker.loses_readers()
    until(lambda: docker.opened >= 3)
    copying.holds(b"one\ntwo\nthree\n")
    copying.probe.close()
    docker.loses_readers()


def test_output_that_got_shorter_is_taken_up_where_the_copy_ends(tmp_path: Path) -> None:
    docker = FakeDocker()
    copying = Copying(docker, tmp_path / "copy.log")
    docker.prints(b"".join(b"line %d\n" % n for n in range(50)))
    whole = docker.output
    copying.holds(whole)
    docker.drops(whole.index(b"line 40"))
    docker.prints(b"line 50\n")
    copying.holds(whole + b"line 50\n")
    copying.probe.close()
    docker.loses_readers()


def test_output_of_which_nothing_is_known_any_more_is_copied_whole(tmp_path: Path) -> None:
    docker = FakeDocker()
    (tmp_path / "copy.log").write_bytes(b"old\n" * 100)
    docker.prints(b"new 1\nnew 2\n")
    copying = Copying(docker, tmp_path / "copy.log")
    copying.holds(b"old\n" * 100 + b"new 1\nnew 2\n")
    copying.probe.close()
    docker.loses_readers()


def test_of_two_one_copies_and_the_other_takes_over(tmp_path: Path) -> None:
    docker = FakeDocker()
    first = Copying(docker, tmp_path / "copy.log")
    docker.prints(b"one\n")
    first.holds(b"one\n")
    second = Copying(docker, tmp_path / "copy.log")
    docker.prints(b"two\n")
    first.holds(b"one\ntwo\n")
    assert docker.opened == 1
    first.probe.close()
    docker.loses_readers()
    until(lambda: docker.opened == 2)
    docker.prints(b"three\n")
    second.holds(b"one\ntwo\nthree\n")
    assert second.probe.read(1.0, second.seen) == ()
    second.probe.close()
    docker.loses_readers()


def test_an_ended_container_is_not_read_over_and_over(tmp_path: Path) -> None:
    docker = FakeDocker()
    docker.prints(b"one\nlast words\n")
    docker.running = False
    docker.follow_logs = lambda *_, **__: count_and_end(docker)  # type: ignore[method-assign]
    copying = Copying(docker, tmp_path / "copy.log")
    copying.holds(docker.output)
    time.sleep(0.1)
    assert docker.opened == 1
    docker.running = True
    until(lambda: docker.opened > 1)
    copying.probe.close()


def count_and_end(docker: FakeDocker) -> Iterator[bytes]:
    docker.opened += 1
    yield docker.output


def test_a_fault_is_told_until_it_is_over(tmp_path: Path) -> None:
    docker = FakeDocker()
    docker.fault = ConnectionError("Docker is not running")
    copying = Copying(docker, tmp_path / "copy.log")
    until(lambda: bool(copying.probe.read(1.0, copying.seen)))
    (event,) = copying.probe.read(2.0, copying.seen)
    assert isinstance(event, LogUnreadable)
    assert event.fault.reason == "the container's output: Docker is not running"
    docker.fault = None
    docker.prints(b"one\n")
    copying.holds(b"one\n")
    assert copying.probe.read(3.0, copying.seen) == ()
    copying.probe.close()
    docker.loses_readers()


LINES = st.lists(st.integers(0, 9).map(lambda n: b"%d\n" % n), max_size=12).map(b"".join)


@given(copy=LINES, more=LINES, dropped=st.integers(0, 12), cuts=st.lists(st.integers(0, 60)))
def test_the_end_of_a_copy_is_found_however_the_stream_is_cut(
    copy: bytes, more: bytes, dropped: int, cuts: list[int]
) -> None:
    """Lines that differ are found exactly; those that repeat leave a choice."""
    output = copy + more
    stream = output[2 * min(dropped, len(output) // 2) :]
    places = sorted({min(cut, len(stream)) for cut in cuts})
    pieces = [stream[a:b] for a, b in zip([0, *places], [*places, len(stream)], strict=True)]
    place = place_of_end(pieces, copy, len(copy))
    assert stream[:place].endswith(copy[-place:]) or not place
    if not dropped or len(set(output.split())) == len(output.split()):
        assert stream[place:] == more[max(0, 2 * dropped - len(copy)) :]


STEPS = st.lists(
    st.one_of(
        st.integers(1, 5).map(lambda count: ("prints", count)),
        st.integers(0, 60).map(lambda size: ("drops", size)),
        st.just(("loses", 0)),
        st.just(("restarts", 0)),
    ),
    max_size=10,
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS)
def test_whatever_happens_each_line_is_copied_once(
    steps: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    docker, copy = FakeDocker(), tmp_path_factory.mktemp("copy") / "copy.log"
    copying, whole, number = Copying(docker, copy), b"", 0
    for what, size in steps:
        if what == "prints":
            text = b"".join(b"line %d\n" % n for n in range(number, number + size))
            number, whole = number + size, whole + text
            docker.prints(text)
        elif what == "drops":  # whole lines, as Docker does
            docker.drops(docker.output.rfind(b"\n", 0, size) + 1)
        elif what == "loses":
            docker.loses_readers()
        else:
            copying.probe.close()
            docker.loses_readers()
            copying = Copying(docker, copy)
        if whole:
            copying.holds(whole)
    copying.probe.close()
    docker.loses_readers()
