"""Simulated time, and the one place where the run waits.

Stop signals are blocked and picked up while waiting, so the run only ever ends between two
actions, never in the middle of one.
"""

from __future__ import annotations

import signal
import threading
import time

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopRequested(Exception):  # noqa: N818 - a request, not an error
    """A signal asked the run to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Pace:
    """Simulated seconds, shortened by the speed."""

    def __init__(self, speed: float) -> None:
        self.speed = speed

    def real_s(self, simulated_s: float) -> float:
        return simulated_s / self.speed

    def wait(self, simulated_s: float) -> None:
        self.wait_real(self.real_s(simulated_s))

    def wait_real(self, real_s: float) -> None:
        """Wait in wall-clock time; a stop signal ends it with `StopRequested`."""
        deadline = time.monotonic() + real_s
        while True:
            taken = signal.sigtimedwait(STOP_SIGNALS, max(0.0, deadline - time.monotonic()))
            # After a stop and SIGCONT, a wait whose time is over returns what is no signal at all.
            if taken is not None and taken.si_signo in STOP_SIGNALS:
                raise StopRequested(taken.si_signo)
            if time.monotonic() >= deadline:
                return

    def wait_for_ever(self) -> None:
        while True:
            self.wait_real(3600.0)


def block_stop_signals() -> None:
    """To be called on the main thread, before any other thread or child exists."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)


def die_by(number: int) -> None:
    """End this process by the signal it was sent, so that its parent sees which one it was."""
    signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))
    signal.raise_signal(number)


def request_stop() -> None:
    """Ask the main thread to end, from another thread."""
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGTERM)
