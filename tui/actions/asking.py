"""Ask a driver in a container to end. Its container's first process may pass no signal on."""

from __future__ import annotations

import signal
from pathlib import Path

from tui.actions import containers
from tui.actions.process_table import inner_pid
from tui.actions.signals import Delivered, is_alive, send
from tui.model.reading import Unknown
from tui.model.target import ContainerTarget, ProcessTarget

_FIRST = 1


def asked_to_end(driver: ProcessTarget, container: ContainerTarget) -> bool:
    """Whether it was told, and can hear it."""
    inner = inner_pid(driver.pid)
    if inner == _FIRST and not catches(driver.pid, signal.SIGTERM):
        return False  # the first process of a pid namespace gets no signal that it does not catch
    delivered = send(driver, signal.SIGTERM).result
    if delivered is not Delivered.REFUSED:
        return delivered is Delivered.SENT
    # Root's, in there. Docker may run a command beside it where we may not send a signal.
    told = containers.exec_in(container.id, ("kill", "-TERM", str(inner)))
    return not isinstance(told, Unknown) and told.value.exit_code == 0 and is_alive(driver)


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler for it; so it is called where that cannot be told."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    for line in text.splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return True
