"""The container probe over a container's life: running, ended, removed, never there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tui.model.events import ContainerRead, ProbeMissed
from tui.model.launch import Attachment, Container, Found
from tui.model.reading import Absence, Known, Reading, Unknown, known
from tui.model.snapshot import Snapshot
from tui.probes.container import ContainerProbe
from tui.runs.docker import DockerEngine
from tui.runs.docker_answers import GONE, LastExit

NOW = 1_795_956_000.0
RUNNING = Container(
    id="ab12", name="run-a", image="radixark/miles", status="running", started_at=NOW - 60
)
NOT_THERE = Container(id="", name="run-a", image="", status=GONE)
FAULT = Unknown(why=Absence.NO_PERMISSION, reason="no permission for Docker", at=NOW)


class FakeDocker(DockerEngine):
    """Says what it is told to; counts who asks for the last exit."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: Container | Unknown = RUNNING
        self.end: LastExit | None = None
        self.ends_asked = 0
        self.oom_since: list[float] = []
        self.oom = False
        self.told_to_end = False
        self.who_asked = 0

    def was_told_to_end(self, container_id: str, since: float, until: float) -> bool:
        assert container_id == "ab12"
        self.who_asked += 1
        return self.told_to_end

    def inspect(self, name: str, at: float) -> Reading[Container]:
        return self.answer if isinstance(self.answer, Unknown) else known(self.answer, at)

    def last_exit(self, container_id: str, since: float, until: float) -> LastExit | None:
        assert container_id == "ab12"
        assert since < NOW
        self.ends_asked += 1
        return self.end

    def had_oom(self, container_id: str, since: float, until: float) -> bool:
        self.oom_since.append(since)
        return self.oom


@pytest.fixture
def docker() -> FakeDocker:
    return FakeDocker()


def watching(name: str) -> Snapshot:
    found = Found(value=name, source="--container")
    return Snapshot(attachment=Attachment(container=found))


def look(probe: ContainerProbe, now: float, name: str = "run-a") -> Reading[Container]:
    event, *missed = probe.read(now, watching(name))
    assert isinstance(event, ContainerRead)
    assert bool(missed) is isinstance(event.container, Unknown)
    return event.container


def test_nothing_is_told_while_no_container_is_watched(docker: FakeDocker) -> None:
    assert ContainerProbe(docker).read(NOW, Snapshot()) == ()


def test_a_container_that_is_kept(docker: FakeDocker) -> None:
    probe = ContainerProbe(docker)
    assert look(probe, NOW) == Known(value=RUNNING, at=NOW)
    docker.answer = replace(RUNNING, status="exited", exit_code=3)
    assert look(probe, NOW + 2) == Known(value=docker.answer, at=NOW + 2)


def test_a_removed_container_keeps_what_was_known_and_how_it_ended(docker: FakeDocker) -> None:
    probe = ContainerProbe(docker)
    look(probe, NOW)
    docker.answer = NOT_THERE
    docker.end = LastExit(exit_code=137, oom_killed=True, at=NOW + 1)
    gone = replace(RUNNING, status=GONE, exit_code=137, oom_killed=True, finished_at=NOW + 1)
    assert look(probe, NOW + 2) == Known(value=gone, at=NOW + 2)
    assert look(probe, NOW + 4) == Known(value=gone, at=NOW + 4)
    assert docker.ends_asked == 1


def test_a_removed_container_whose_end_is_not_remembered(docker: FakeDocker) -> None:
    probe = ContainerProbe(docker)
    look(probe, NOW)
    docker.answer = NOT_THERE
    assert look(probe, NOW + 2) == Known(value=replace(RUNNING, status=GONE), at=NOW + 2)


def test_an_exit_code_read_before_the_removal_is_kept(docker: FakeDocker) -> None:
    probe = ContainerProbe(docker)
    docker.answer = replace(RUNNING, status="removing", exit_code=1, oom_killed=True)
    look(probe, NOW)
    docker.answer = NOT_THERE
    reading = look(probe, NOW + 2)
    assert isinstance(reading, Known)
    assert (reading.value.exit_code, reading.value.oom_killed) == (1, True)


def test_a_process_killed_in_it_is_a_flag_for_good(docker: FakeDocker) -> None:
    probe = ContainerProbe(docker)
    assert look(probe, NOW) == Known(value=RUNNING, at=NOW)
    docker.oom = True
    flagged = replace(RUNNING, oom_killed=True)
    assert look(probe, NOW + 2) == Known(value=flagged, at=NOW + 2)
    docker.oom = False
    assert look(probe, NOW + 4) == Known(value=flagged, at=NOW + 4)
    assert docker.oom_since == [NOW - 62.0, NOW - 2.0]


@pytest.mark.parametrize("status", ["exited", GONE])
@pytest.mark.parametrize("told", [True, False])
def test_who_ended_it_is_asked_once_and_kept(docker: FakeDocker, status: str, told: bool) -> None:
    probe = ContainerProbe(docker)
    look(probe, NOW)
    docker.told_to_end = told
    docker.answer = NOT_THERE if status == GONE else replace(RUNNING, status=status, exit_code=137)
    readings = [look(probe, NOW + 2 * look_number) for look_number in (1, 2, 3)]

    assert [isinstance(each, Known) and each.value.told_to_end for each in readings] == [told] * 3
    assert docker.who_asked == 1


def test_one_that_never_was_there_is_missing(docker: FakeDocker) -> None:
    docker.answer = NOT_THERE
    reading = look(ContainerProbe(docker), NOW)
    assert reading == Unknown(why=Absence.MISSING, reason="there is no container run-a", at=NOW)


def test_a_fault_forgets_nothing(docker: FakeDocker) -> None:
    probe = ContainerProbe(docker)
    look(probe, NOW)
    docker.answer = FAULT
    look(probe, NOW + 2)
    docker.answer = NOT_THERE
    reading = look(probe, NOW + 4)
    assert isinstance(reading, Known)
    assert reading.value.image == "radixark/miles"


def test_a_fault_tells_how_old_the_last_answer_is(docker: FakeDocker) -> None:
    probe = ContainerProbe(docker)
    docker.answer = FAULT
    assert look(probe, NOW) == FAULT
    docker.answer = RUNNING
    look(probe, NOW + 2)
    docker.answer = FAULT
    _, missed = probe.read(NOW + 32, watching("run-a"))
    assert isinstance(missed, ProbeMissed)
    assert missed.fault.reason == "no permission for Docker; it was running 30 s ago"


def test_the_same_name_started_again_is_seen(docker: FakeDocker) -> None:
    probe = ContainerProbe(docker)
    look(probe, NOW)
    docker.answer = NOT_THERE
    look(probe, NOW + 2)
    docker.answer = replace(RUNNING, id="cd34")
    assert look(probe, NOW + 4) == Known(value=docker.answer, at=NOW + 4)


def test_another_name_starts_afresh(docker: FakeDocker) -> None:
    probe = ContainerProbe(docker)
    look(probe, NOW)
    docker.answer = NOT_THERE
    assert isinstance(look(probe, NOW + 2, "run-b"), Unknown)
