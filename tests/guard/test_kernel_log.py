"""Where the kernel may be read it is; where not, why, and nothing is made up."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tui.guard.kernel_clues import KernelClue, KernelLine, kernel_line
from tui.guard.kernel_log import kernel_lines
from tui.model.reading import Absence, Known, Reading

AT = 1_795_442_531.0
OOM = (
    "Memory cgroup out of memory: Killed process 12908 (python3) total-vm:1061084kB, "
    "anon-rss:65152kB, file-rss:5836kB, shmem-rss:0kB, UID:0 pgtables:192kB oom_score_adj:0"
)
BOOT = "11158a90-e0e6-4823-86da-fac6ed93635c"


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder programs are looked for in."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    files = (tmp_path / "kern.log", tmp_path / "kern.log.1")
    monkeypatch.setattr("tui.guard.kernel_log._FILES", files)
    return folder


def program(folder: Path, name: str, *, out: str = "", told: str = "", code: int = 0) -> None:
    """A program that notes its arguments and says this."""
    path = folder / name
    path.write_text(
        f'#!/bin/sh\necho "$@" > {folder}/{name}.arguments\n'
        f"/bin/cat <<'END'\n{out}END\n/bin/cat >&2 <<'END'\n{told}END\nexit {code}\n"
    )
    path.chmod(0o755)


def asked(**changes: float) -> Reading[tuple[KernelLine, ...]]:
    return kernel_lines(BOOT, AT - 60.0, AT + 60.0, **changes)


def lines_of(reading: Reading[tuple[KernelLine, ...]]) -> tuple[KernelLine, ...]:
    assert isinstance(reading, Known)
    return reading.value


def test_the_journal_of_that_boot_and_time(programs: Path) -> None:
    out = (
        f"{AT - 2:.6f} vm kernel: docker0: port 1(veth1205809) entered blocking state\n"
        f"{AT - 1:.6f} vm kernel: {OOM}\n"
        f"{AT:.6f} vm systemd[1]: Reached target reboot.target - System Reboot.\n"
        f"{AT + 600:.6f} vm kernel: Kernel panic - not syncing\n"
        "-- No entries --\n"
    )
    program(programs, "journalctl", out=out)
    oom, orderly = lines_of(asked())
    arguments = (programs / "journalctl.arguments").read_text()

    assert (oom.clue, oom.pid, oom.name) == (KernelClue.CONTAINER_OOM, 12908, "python3")
    assert orderly.clue is KernelClue.ORDERLY
    assert "--boot=11158a90e0e6482386dafac6ed93635c" in arguments
    assert f"--since=@{AT - 60:.0f}" in arguments


def test_a_journal_without_a_word_about_it_is_not_unreadable(programs: Path) -> None:
    program(programs, "journalctl", out=f"{AT:.6f} vm kernel: eth0: renamed\n")

    assert lines_of(asked()) == ()


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (
            "Hint: You are currently not seeing messages from other users and the system.\n"
            "No journal files were opened due to insufficient permissions.\n",
            Absence.NO_PERMISSION,
        ),
        (
            "Data from the specified boot (1) is not available: No such boot ID in journal\n",
            Absence.MISSING,
        ),
        ("No journal files were found.\n", Absence.MISSING),
    ],
)
def test_a_journal_that_cannot_be_read_says_why(programs: Path, told: str, why: Absence) -> None:
    program(programs, "journalctl", told=told, code=0 if "Hint" in told else 1)
    reading = asked()

    assert not isinstance(reading, Known)
    assert reading.why is why
    assert "journalctl" in reading.reason


def test_without_a_journal_the_log_file(programs: Path, tmp_path: Path) -> None:
    old = time.strftime("%b %d %H:%M:%S", time.localtime(AT - 5))
    new = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(AT)) + ".123456+00:00"
    (tmp_path / "kern.log.1").write_text(f"{old} spark kernel: [ 4242.1] {OOM}\nrubbish\n")
    (tmp_path / "kern.log").write_text(f"{new} spark kernel: NVRM: Xid (PCI:000F:01:00): 31\n")
    first, second = lines_of(asked())

    assert (first.clue, first.at) == (KernelClue.CONTAINER_OOM, AT - 5)
    assert second.clue is KernelClue.GPU_FAULT
    assert second.at == pytest.approx(AT + 0.123456)


def test_the_buffer_of_the_present_boot_comes_last(programs: Path) -> None:
    program(programs, "dmesg", out=f"[11935.717089] {OOM}\n[    0.000000] Linux version\n")
    (line,) = lines_of(asked(booted_at=AT - 11935.717089))

    assert line.at == pytest.approx(AT)
    assert not isinstance(asked(), Known)


def test_a_buffer_that_is_refused(programs: Path) -> None:
    told = "dmesg: read kernel buffer failed: Operation not permitted\n"
    program(programs, "dmesg", told=told, code=1)
    reading = asked(booted_at=AT)

    assert not isinstance(reading, Known)
    assert reading.why is Absence.NO_PERMISSION
    assert "adm" in reading.reason


def test_with_nothing_to_read_everything_that_was_tried_is_named() -> None:
    reading = asked(booted_at=AT)

    assert not isinstance(reading, Known)
    assert reading.why is Absence.MISSING
    assert "journalctl is not installed" in reading.reason
    assert "kern.log: No such file" in reading.reason
    assert "dmesg is not installed" in reading.reason


def test_a_program_that_hangs_is_left(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.guard.kernel_log._ANSWER_S", 0.2)
    path = programs / "journalctl"
    path.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    path.chmod(0o755)
    reading = asked()

    assert not isinstance(reading, Known)
    assert "did not answer" in reading.reason


@pytest.mark.parametrize(
    ("text", "clue", "pid"),
    [
        ("Out of memory: Killed process 8123 (sglang::schedul) total-vm:1kB", "HOST_OOM", 8123),
        ("Out of memory (oom_kill_allocating_task): Killed process 7 (a)", "HOST_OOM", 7),
        (OOM, "CONTAINER_OOM", 12908),
        ('sending SIGTERM to process 8123 uid 0 "python3": badness 1', "USER_OOM", 8123),
        ("Killed /user.slice/a.scope due to memory pressure for /user.slice", "USER_OOM", None),
        ("NVRM: rmapi: NV_ERR_NO_MEMORY (0x51) _memdescAllocInternal", "GPU_MEMORY", None),
        ("NVRM: GPU at PCI:000F:01:00: GPU has fallen off the bus.", "GPU_FAULT", None),
        ("watchdog: BUG: soft lockup - CPU#3 stuck for 26s! [python3:4242]", "LOCKUP", None),
        ("INFO: task python3:4242 blocked for more than 122 seconds.", "LOCKUP", None),
        ("mce: [Hardware Error]: CPU 0: Machine check", "HARDWARE", None),
        (
            "thermal thermal_zone0: acpitz: critical temperature reached, shutting down",
            "HEAT",
            None,
        ),
        ("Kernel panic - not syncing: Attempted to kill init!", "PANIC", None),
        ("Received SIGTERM from PID 1 (systemd-shutdow).", "ORDERLY", None),
        ("EXT4-fs (nvme0n1p2): Remounting filesystem read-only", "DISK", None),
    ],
)
def test_what_lines_witness(text: str, clue: str, pid: int | None) -> None:
    line = kernel_line(AT, text)

    assert line is not None
    assert (line.clue.name, line.pid) == (clue, pid)


@pytest.mark.parametrize(
    "text",
    [
        "Linux version 6.17.0-1032-nvidia",
        "NVRM: loading NVIDIA UNIX Open Kernel Module for aarch64  580.126.09",
        "python3 invoked oom-killer: gfp_mask=0x140cca",
        "oom_reaper: reaped process 4242 (python3)",
        "pcieport 0000:00:00.0: DOE: mailbox timeout",
        "",
    ],
)
def test_what_lines_do_not(text: str) -> None:
    assert kernel_line(AT, text) is None
