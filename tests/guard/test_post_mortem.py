"""What is said of a box that went down and a run that died: facts, and `unknown` where there is none."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import fakes
import pytest
from fake_box import NOW, container
from hypothesis import given
from hypothesis import strategies as st
from logs import parsed
from recorded import (
    Look,
    box,
    crashed,
    doing,
    ended,
    every,
    left,
    moment,
    rebooted,
    recorded,
    samples,
)

from tui.guard.exits import Confidence
from tui.guard.incidents import Incident, IncidentKind, incidents
from tui.guard.inquest import PostMortem, told
from tui.guard.kernel_clues import KernelClue, KernelLine
from tui.guard.past import records_in
from tui.guard.post_mortem import post_mortem_of, post_mortems_of
from tui.guard.records import Record, Session
from tui.model.progress import LineKind, LogLine
from tui.model.reading import Absence, Unknown, known
from tui.model.snapshot import Snapshot

Journal = Callable[..., Path]


@pytest.fixture(autouse=True)
def _no_kernel_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine's own kernel: neither its programs nor its files."""
    (tmp_path / "programs").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    monkeypatch.setattr("tui.guard.kernel_log._FILES", (tmp_path / "kern.log",))
    monkeypatch.setattr("tui.guard.tape.time.localtime", time.gmtime)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """A journal that says these lines at so many seconds after NOW."""

    def written(*lines: tuple[float, str]) -> Path:
        text = "".join(f"{NOW + after:.6f} spark kernel: {line}\n" for after, line in lines)
        program = tmp_path / "programs" / "journalctl"
        program.write_text(f"#!/bin/sh\nexec /bin/cat <<'END'\n{text}END\n")
        program.chmod(0o755)
        return program

    return written


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's state folder."""
    return tmp_path / "run-a-1f0c93ab"


def falling(until_s: float, *, from_gib: float, by_gib: float, snapshot: Snapshot) -> list[Look]:
    """A look a second at a box whose memory goes, the last one at `until_s`."""
    steps = int(from_gib / by_gib) + 1
    return [
        (
            moment(until_s - steps + 1 + step),
            left(max(0.2, from_gib - by_gib * step), snapshot),
        )
        for step in range(steps)
    ]


def after_reboot(run: Path, after_s: float = 900.0) -> PostMortem:
    found = post_mortem_of(run, rebooted(after_s), "boot-b")
    assert found is not None
    return found


def test_a_box_that_ran_out_of_memory(run: Path) -> None:
    at_work = doing("wake_up", 61, 61)
    crashed(
        run,
        [
            *every(5.0, 85.0, left(37.0, at_work)),
            *falling(100.0, from_gib=36.2, by_gib=4.0, snapshot=at_work),
        ],
    )
    found = after_reboot(run)

    assert found.line == (
        "the box went down at 14:03, memory exhausted (0.2 GiB of 121.7 GiB left), "
        "during wake_up after rollout 61"
    )
    assert found.confidence is Confidence.LIKELY
    assert found.kind is IncidentKind.BOX_DOWN
    assert (found.from_at, found.until_at) == (NOW + 100.0, NOW + 900.0)
    assert len(found.samples) >= 15
    assert any("falling by 4.0 GiB a second" in line for line in found.evidence)
    assert any(line.endswith("before: 37.0 GiB of memory left") for line in found.evidence)
    assert any(line.startswith("started again 14:16:41, 13 min later") for line in found.evidence)
    assert any(line.startswith("kernel: cannot be read: ") for line in found.evidence)


def test_a_box_that_was_running_out_faster_than_it_was_looked_at(run: Path) -> None:
    looks = [*every(5.0, 60.0, left(34.0)), (moment(61.5), left(12.7))]
    crashed(run, looks)
    found = after_reboot(run)

    assert "memory running out (12.7 GiB of 121.7 GiB left, gone in 0.9 s at that rate)" in (
        found.line
    )
    assert found.confidence is Confidence.LIKELY


@pytest.mark.parametrize("gib", [37.0, 14.0, 6.0])
def test_a_box_that_went_down_with_memory_left_went_down_for_an_unknown_cause(
    run: Path, gib: float
) -> None:
    crashed(run, every(5.0, 100.0, left(gib)))
    found = after_reboot(run)

    assert found.line == (
        "the box went down at 14:03, cause unknown, during actor_train after rollout 61"
    )
    assert found.confidence is Confidence.UNKNOWN


def test_nvrm_memory_lines_are_evidence_and_no_cause(run: Path, journal: Journal) -> None:
    journal((99.0, "NVRM: rmapi: NV_ERR_NO_MEMORY (0x51) _memdescAllocInternal mem_desc.c:1359"))
    crashed(run, every(5.0, 100.0, left(22.0)))
    found = after_reboot(run)

    assert found.confidence is Confidence.UNKNOWN
    assert "cause unknown" in found.line
    assert any("NV_ERR_NO_MEMORY" in line for line in found.evidence)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("Kernel panic - not syncing: Fatal exception", "kernel panic by kernel line"),
        (
            "thermal thermal_zone0: critical temperature reached",
            "shut down for heat by kernel line",
        ),
        ("systemd-logind[812]: The system will reboot now!", "shut down in order by kernel line"),
    ],
)
def test_what_the_kernel_says_is_the_cause(
    run: Path, journal: Journal, line: str, cause: str
) -> None:
    journal((100.5, line))
    crashed(run, every(5.0, 100.0, left(0.5)))
    found = after_reboot(run)

    assert found.line.startswith(f"the box went down at 14:03, {cause}, ")
    assert found.confidence is Confidence.PROVEN


def test_a_box_that_went_down_when_nobody_recorded(run: Path) -> None:
    recorded(run, every(5.0, 100.0, fakes.running())).end(moment(101.0))
    found = after_reboot(run, 90_000.0)

    assert found.line.startswith("the box went down after 14:03, when milepost had been ended")
    assert found.confidence is Confidence.UNKNOWN


def test_it_is_still_told_when_the_run_goes_on_on_the_new_boot(run: Path) -> None:
    crashed(run, every(5.0, 100.0, left(0.3)))
    later = [(rebooted(900.0 + second), fakes.starting()) for second in range(0, 300, 5)]
    later = [
        (replace(when, uptime_s=30.0 + index * 5), seen) for index, (when, seen) in enumerate(later)
    ]
    tape = recorded(run, later, boot="boot-b")
    found = post_mortem_of(run, rebooted(1200.0, up_s=330.0), "boot-b")
    tape.end(later[-1][0])

    assert found is not None
    assert found.line.startswith("the box went down at 14:03, memory exhausted")


def test_a_damaged_line_about_the_boot_does_not_hide_it(run: Path) -> None:
    crashed(run, every(5.0, 100.0, left(0.3)))
    looks = [
        (replace(rebooted(900.0 + n * 5.0), uptime_s=30.0 + n * 5.0), fakes.running())
        for n in range(9)
    ]
    tape = recorded(run, looks, boot="boot-b")
    tape.end(looks[-1][0])
    (first, *_) = sorted((run / "samples").glob("*.samples"))
    content = first.read_bytes()
    where = content.index(b"boot-b")
    first.write_bytes(content[:where] + b"X" + content[where + 1 :])
    kinds = [each.kind for each in post_mortems_of(run, rebooted(1000.0, up_s=130.0), "boot-b")]

    assert kinds == [IncidentKind.BOX_DOWN]


def test_another_kernel_after_the_reboot_is_said(run: Path) -> None:
    crashed(run, every(5.0, 100.0, fakes.running()))
    tape = recorded(run, ())
    tape._box = box("boot-b", kernel="7.0.0-1019-nvidia")
    tape.take([(rebooted(900.0), fakes.running())])
    tape.end(rebooted(901.0, up_s=31.0))
    found = after_reboot(run, 950.0)

    assert "kernel 6.17.0-1032-nvidia before, 7.0.0-1019-nvidia now" in found.evidence


def test_a_hole_in_one_boot_is_not_called_anything(run: Path) -> None:
    before, after = fakes.running(), fakes.running()
    grown = replace(after, log=replace(after.log, size_bytes=after.log.size_bytes + 3_000_000))
    crashed(run, [*every(5.0, 60.0, before), *every(5.0, 700.0, grown, from_s=687.0)])
    found = post_mortem_of(run, moment(702.0), "boot-a")

    assert found is not None
    assert found.line.startswith(
        "nothing was recorded for 10 min from 14:03: unknown whether the box stood still or "
        "milepost was stopped"
    )
    assert found.confidence is Confidence.UNKNOWN
    assert "recorded again 14:13:38; the log grew by 3.0 MB" in found.evidence


def test_a_box_that_stood_still_without_memory(run: Path) -> None:
    crashed(run, [*every(5.0, 60.0, left(0.5)), *every(5.0, 700.0, left(37.0), from_s=687.0)])
    found = post_mortem_of(run, moment(702.0), "boot-a")

    assert found is not None
    assert found.line.startswith("the box stood still for 10 min from 14:03, memory exhausted")
    assert found.confidence is Confidence.LIKELY


def test_a_box_that_slept(run: Path) -> None:
    looks = [*every(5.0, 60.0, fakes.running())]
    looks += [(moment(second, asleep_s=3000.0), fakes.running()) for second in range(3065, 3100, 5)]
    crashed(run, looks)
    (found,) = post_mortems_of(run, moment(3096.0, asleep_s=3000.0), "boot-a")

    assert found.line.startswith("the box slept for 50 min from 14:03")
    assert found.confidence is Confidence.PROVEN


def test_samples_that_a_full_disk_dropped_are_no_hole(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = recorded(run, every(5.0, 60.0, fakes.running()))
    with monkeypatch.context() as full:
        full.setattr("tui.guard.ring.os.fdatasync", _no_space)
        tape.take([(moment(65.0), fakes.running())])
    tape.take([*every(5.0, 700.0, fakes.running(), from_s=670.0)])

    assert post_mortems_of(run, moment(702.0), "boot-a") == ()
    tape.end(moment(702.0))


def _no_space(_: int) -> None:
    raise OSError(28, "No space left on device")


def test_looks_a_minute_apart_are_no_holes(run: Path) -> None:
    recorded(run, every(60.0, 3600.0, fakes.running())).end(moment(3600.0))

    assert post_mortems_of(run, moment(3601.0), "boot-a") == ()


def test_a_recorder_that_ended_in_order_left_no_hole(run: Path) -> None:
    recorded(run, every(5.0, 60.0, fakes.running())).end(moment(61.0))
    recorded(run, every(5.0, 700.0, fakes.running(), from_s=600.0)).end(moment(701.0))

    assert post_mortem_of(run, moment(900.0), "boot-a") is None


def test_a_recorder_that_ended_without_a_word(run: Path, journal: Journal) -> None:
    crashed(run, every(5.0, 60.0, fakes.running()))
    found = post_mortem_of(run, moment(600.0), "boot-a")
    assert found is not None
    assert found.line.startswith(
        "milepost ended at 14:03 without a word, cause unknown; the box stayed up"
    )
    journal((61.0, f"Out of memory: Killed process {os.getpid()} (milepost) total-vm:1kB"))
    found = post_mortem_of(run, moment(600.0), "boot-a")

    assert found is not None
    assert found.line.startswith("milepost was killed at 14:03, host OOM by kernel line")
    assert found.confidence is Confidence.PROVEN


def test_a_healthy_record_has_nothing_to_tell(run: Path) -> None:
    tape = recorded(run, every(1.0, 600.0, fakes.running()))

    assert post_mortem_of(run, moment(601.0), "boot-a") is None
    tape.end(moment(601.0))


def test_no_record_has_nothing_to_tell(run: Path) -> None:
    assert post_mortem_of(run, moment(0.0), "boot-a") is None


def death_of(run: Path, last: Snapshot, before: Snapshot | None = None) -> PostMortem:
    looks = [*every(5.0, 60.0, before or fakes.running()), *every(5.0, 120.0, last, from_s=62.0)]
    recorded(run, looks).end(moment(121.0))
    found = post_mortem_of(run, moment(122.0), "boot-a")
    assert found is not None
    assert found.kind is IncidentKind.RUN_DIED
    return found


KILLED_BY_HOST = (
    "Out of memory: Killed process 4101 (ray::FSDPTrainR) total-vm:62914560kB, anon-rss:1kB"
)
KILLED_BY_LIMIT = "Memory cgroup out of memory: Killed process 4101 (ray::FSDPTrainR) total-vm:1kB"
KILLED_STRANGER = "Out of memory: Killed process 999 (firefox) total-vm:62914560kB, anon-rss:1kB"


@pytest.mark.parametrize(
    ("code", "flag", "kernel", "words", "confidence"),
    [
        (137, True, "", "killed by SIGKILL (137), for memory by the container's OOM flag", "proven"),
        (137, False, "", "killed by SIGKILL (137), without the OOM flag, cause unknown", "unknown"),
        (
            137, False, KILLED_BY_HOST,
            "killed by SIGKILL (137), host OOM by kernel line (trainer 4101)", "proven",
        ),
        (
            137, True, KILLED_BY_LIMIT,
            "killed by SIGKILL (137), its memory limit by kernel line (trainer 4101)", "proven",
        ),
        (
            137, False, KILLED_STRANGER,
            "killed by SIGKILL (137), without the OOM flag, cause unknown", "unknown",
        ),
        (143, False, "", "asked to end by SIGTERM (143), cause unknown", "unknown"),
        (139, False, "", "segmentation fault, SIGSEGV (139)", "proven"),
        (
            1, True, "",
            "ended with exit code 1, after a process in it was killed for memory (OOM flag)",
            "likely",
        ),
        (
            1, False, KILLED_BY_HOST,
            "ended with exit code 1, host OOM by kernel line (trainer 4101)", "likely",
        ),
        (1, False, "", "ended with exit code 1, cause unknown", "unknown"),
        (None, False, "", "gone, exit code unknown, cause unknown", "unknown"),
        (
            None, False, KILLED_BY_HOST,
            "gone, exit code unknown, host OOM by kernel line (trainer 4101)", "proven",
        ),
    ],
)  # fmt: skip
def test_exit_codes_are_told_apart(
    run: Path,
    journal: Journal,
    code: int | None,
    flag: bool,
    kernel: str,
    words: str,
    confidence: str,
) -> None:
    if kernel:
        journal((61.5, kernel))
    found = death_of(run, ended(code, oom_killed=flag))

    assert found.line == (f"the run died at 14:03: {words}, during actor_train after rollout 61")
    assert found.confidence == confidence


def test_a_flag_from_earlier_is_not_taken_for_the_cause(run: Path) -> None:
    flagged = replace(fakes.running(), container=known(container(oom_killed=True), NOW))
    found = death_of(run, ended(137, oom_killed=True), before=flagged)

    assert "killed by SIGKILL (137), with an OOM flag from earlier, cause unknown" in found.line
    assert found.confidence is Confidence.UNKNOWN


def test_a_flag_that_came_a_moment_before_the_end_is_of_the_end(run: Path) -> None:
    flagged = replace(fakes.running(), container=known(container(oom_killed=True), NOW))
    looks = [
        *every(5.0, 60.0, fakes.running()),
        (moment(61.0), flagged),
        *every(5.0, 120.0, ended(137, oom_killed=True), from_s=63.0),
    ]
    recorded(run, looks).end(moment(121.0))
    (found,) = post_mortems_of(run, moment(122.0), "boot-a")

    assert "for memory by the container's OOM flag" in found.line
    assert found.confidence is Confidence.PROVEN


def test_a_process_killed_in_a_container_that_lives(run: Path, journal: Journal) -> None:
    flagged = replace(fakes.running(), container=known(container(oom_killed=True), NOW))
    looks = [*every(5.0, 60.0, fakes.running()), *every(5.0, 200.0, flagged, from_s=61.0)]
    recorded(run, looks).end(moment(201.0))
    journal((60.5, KILLED_BY_LIMIT))
    (found,) = post_mortems_of(run, moment(202.0), "boot-a")

    assert found.kind is IncidentKind.PROCESS_KILLED
    assert found.line.startswith(
        "a process in the container was killed for memory at 14:03 (OOM flag), "
        "its memory limit by kernel line (trainer 4101); the container lives"
    )
    assert found.confidence is Confidence.PROVEN


def test_an_exit_code_that_comes_later_is_waited_for(run: Path) -> None:
    looks = [
        *every(5.0, 60.0, fakes.running()),
        (moment(62.0), ended(None, status="running")),
        *every(5.0, 120.0, ended(137), from_s=64.0),
    ]
    recorded(run, looks).end(moment(121.0))
    (found,) = post_mortems_of(run, moment(122.0), "boot-a")

    assert "SIGKILL (137)" in found.line


def test_what_the_log_says_of_the_end_is_its_cause(run: Path) -> None:
    told_why = replace(ended(1), verdict=fakes.failed().verdict)
    found = death_of(run, told_why)

    assert "ended with exit code 1: disk full while saving iter 80" in found.line
    assert found.confidence is Confidence.PROVEN


def test_a_run_that_was_only_out_of_sight_has_not_died(run: Path) -> None:
    looks = [
        *every(5.0, 60.0, fakes.running()),
        (moment(62.0), ended(None, status="gone")),
        *every(5.0, 120.0, fakes.running(), from_s=64.0),
    ]
    recorded(run, looks).end(moment(121.0))

    assert post_mortems_of(run, moment(122.0), "boot-a") == ()


def test_a_dead_run_that_was_only_opened_has_not_died_again(run: Path) -> None:
    recorded(run, every(5.0, 120.0, ended(137))).end(moment(121.0))

    assert post_mortems_of(run, moment(122.0), "boot-a") == ()


def test_a_run_that_died_while_milepost_was_gone(run: Path) -> None:
    crashed(run, every(5.0, 60.0, fakes.running()))
    recorded(run, every(5.0, 700.0, ended(137), from_s=600.0)).end(moment(701.0))
    kinds = [each.kind for each in post_mortems_of(run, moment(702.0), "boot-a")]
    newest = post_mortem_of(run, moment(702.0), "boot-a")

    assert kinds == [IncidentKind.UNWATCHED, IncidentKind.RUN_DIED]
    assert newest is not None
    assert newest.kind is IncidentKind.RUN_DIED
    assert newest.line.startswith("the run died at 14:03 or later, by 14:12: killed by SIGKILL")


def test_without_boot_ids_an_uptime_that_begins_again_is_another_boot(run: Path) -> None:
    crashed(run, every(5.0, 100.0, left(0.3)), boot="")
    found = post_mortem_of(run, rebooted(900.0), "")

    assert found is not None
    assert found.kind is IncidentKind.BOX_DOWN


def test_the_logs_last_words_survive_a_log_that_did_not(run: Path, tmp_path: Path) -> None:
    plain = fakes.running()
    error = LogLine(at=NOW, source="trainer", text="NCCL WARN timeout", kind=LineKind.WARNING)
    spoke = replace(plain, lines=(*plain.lines, error))
    crashed(run, [(moment(0.0), plain), *every(5.0, 60.0, spoke, from_s=5.0)])
    found = after_reboot(run)

    assert "log, trainer: NCCL WARN timeout" in found.evidence


def test_a_log_that_is_there_adds_what_came_after(run: Path, tmp_path: Path) -> None:
    log = tmp_path / "plain.log"
    stamp = "[2026-11-29 14:02:11.000 actor_cell0_rank0]"
    spoken = [
        f"(FSDPTrainRayActor pid=200) {stamp} timer.py:31 - Timer wake_up start",
        f"(FSDPTrainRayActor pid=200) {stamp} trainer.py:9 - the last thing it said",
    ]
    log.write_text(f"{spoken[0]}\n")
    plain = fakes.running()
    (shown,) = parsed(spoken[:1])[1]
    started = replace(shown, at=NOW)
    status = replace(plain.log, path=str(log), size_bytes=log.stat().st_size)
    spoke = replace(plain, lines=(*plain.lines, started), log=status)
    crashed(run, [(moment(0.0), plain), *every(5.0, 60.0, spoke, from_s=5.0)])
    log.write_text(
        "\n".join(spoken) + "\n\0\0\0\nJob 'raysubmit_9' submitted successfully\nnot ours\n"
    )
    found = after_reboot(run)

    assert any("the last thing it said" in line for line in found.evidence)
    assert not any("not ours" in line for line in found.evidence)


MAYBE = st.none() | st.sampled_from([0, 1, 2, 137, 139, 143, -9, 255])


@given(
    kind=st.sampled_from(list(IncidentKind)),
    code=MAYBE,
    gib=st.floats(10.0, 100.0),
    in_order=st.booleans(),
    clue=st.none()
    | st.sampled_from(
        [KernelClue.GPU_MEMORY, KernelClue.GPU_FAULT, KernelClue.HARDWARE, KernelClue.DISK]
    ),
)
def test_without_a_witness_unknown_stays_unknown(
    kind: IncidentKind, code: int | None, gib: float, in_order: bool, clue: KernelClue | None
) -> None:
    before = samples(every(5.0, 60.0, left(gib)))
    (after,) = samples([(moment(600.0), ended(code))])
    incident = Incident(
        kind=kind, before=tuple(before), session=None, after=after, in_order=in_order
    )
    lines = (KernelLine(at=NOW + 60.0, text="a line", clue=clue),) if clue else ()
    found = told(incident, known(lines, NOW), ())
    is_fact = kind in (IncidentKind.SLEPT, IncidentKind.PROCESS_KILLED) or (
        kind is IncidentKind.RUN_DIED and code == 139
    )

    assert is_fact or found.confidence is Confidence.UNKNOWN
    assert is_fact or "unknown" in found.line


def test_why_the_kernel_is_silent_is_said(run: Path) -> None:
    looks = every(5.0, 60.0, fakes.running())
    crashed(run, looks)
    (incident,) = incidents([*records_in(run), *_reboot()])
    fault = Unknown(why=Absence.NO_PERMISSION, reason="journalctl shows it only to root")
    found = told(incident, fault, ())

    assert "kernel: cannot be read: journalctl shows it only to root" in found.evidence


def _reboot() -> list[Record]:
    when = rebooted(900.0)
    return [
        Session(
            at=when.at, uptime_s=when.uptime_s, began_uptime_s=when.uptime_s,
            pid=1, utc_offset_s=0, box=box("boot-b"), run="run-a",
        )
    ]  # fmt: skip
