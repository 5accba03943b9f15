"""One process looked at without touching it: by py-spy where it is at hand, and by the kernel.

py-spy reads the memory of the process and does not stop it: one that hangs stands still anyhow, and
one that a tracer leaves behind stopped would hang for good.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tui.actions.containers import exec_in
from tui.actions.process_table import inner_pid, read_row, stuck_in, waits_in
from tui.actions.signals import target_started_at
from tui.actions.stacks import Sight, Thread, threads_of
from tui.miles.secrets import masked_text
from tui.model.launch import Process
from tui.model.reading import Unknown

LOOK_S = 8.0
_WORDS = ("dump", "--nonblocking", "--json", "--pid")
_TRIES = 2
"""Of a process that moves the memory may be read half changed."""
_KERNEL_FILES = ("wchan", "syscall", "stack", "status")
_MOST_CHARS = 20_000


def look_at(process: Process, container_id: str) -> Sight:
    """What it is at."""
    label = _label(process)
    if target_started_at(process.pid, process.started_at) is None:
        return Sight(pid=process.pid, label=label, fault="it is gone")
    row = read_row(process.pid)
    stuck = stuck_in(process.pid)
    threads, fault = _python(process.pid, container_id)
    return Sight(
        pid=process.pid,
        label=label,
        state="D" if stuck else row.state if row is not None else "",
        waits_in=stuck or waits_in(Path(f"/proc/{process.pid}")),
        threads=threads,
        fault=fault,
    )


def kernel_text(pid: int) -> str:
    """What the kernel says of the process, as far as it may be read."""
    return "\n".join(_kernel_parts(pid))


def py_spy() -> str | None:
    """Where py-spy is: beside our Python, else on the path."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else shutil.which("py-spy")


def _label(process: Process) -> str:
    name = process.title.split(" ")[0]
    if name.startswith("ray::"):
        return name.removeprefix("ray::")
    return name if name.startswith("sglang::") else process.role


def _python(pid: int, container_id: str) -> tuple[tuple[Thread, ...], str]:
    """Its threads, or why there are none; by way of its container where we may not look."""
    threads, fault = _dumped(pid)
    if threads or not container_id or (inner := inner_pid(pid)) == pid:
        return threads, fault
    for privileged in (True, False):  # not every engine may give more rights than it has
        words = ("py-spy", *_WORDS, str(inner))
        ran = exec_in(container_id, words, timeout_s=LOOK_S, privileged=privileged)
        if isinstance(ran, Unknown):
            return (), f"{fault}; in its container: {ran.reason}"
        if threads := threads_of(ran.value.output):
            return threads, ""
        fault = f"{fault}; in its container: {_said(ran.value.output)}"
    return (), fault


def _dumped(pid: int) -> tuple[tuple[Thread, ...], str]:
    program = py_spy()
    if program is None:
        return (), "py-spy is not installed: pip install 'milepost[autopsy]'"
    said = ""
    for _ in range(_TRIES):
        try:
            ran = subprocess.run(  # noqa: S603 - found beside our Python or on the path
                [program, *_WORDS, str(pid)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LOOK_S,
            )
        except subprocess.TimeoutExpired:
            return (), f"py-spy did not answer within {LOOK_S:g} s"
        except OSError as error:
            return (), f"py-spy: {error.strerror}"
        if threads := threads_of(ran.stdout):
            return threads, ""
        said = _said(ran.stderr)
    return (), f"py-spy: {said}"


def _said(error: str) -> str:
    """The innermost cause of its error: `1: Permission denied (os error 13)`."""
    before, _, _ = error.partition("\nStack backtrace")
    lines = [line.strip() for line in before.splitlines() if line.strip()]
    return masked_text(lines[-1])[:200] if lines else "it said nothing"


def _kernel_parts(pid: int) -> Iterator[str]:
    for name in _KERNEL_FILES:
        try:
            text = Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            text = f"not readable: {error.strerror}"
        yield f"{name}:\n{text[:_MOST_CHARS].strip()}\n"
