"""Whether a process would hear that it is asked to end."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tui.actions.asking import catches

_SAYS = "import signal, sys; {told}; print('ready', flush=True); sys.stdin.read()"


@pytest.mark.parametrize(
    ("told", "hears"),
    [
        ("pass", False),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", False),
        ("signal.signal(signal.SIGTERM, lambda *_: sys.exit())", True),
    ],
)
def test_a_handler_is_told_by_the_kernel(told: str, hears: bool) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _SAYS.format(told=told)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    with child:
        child.stdout.readline()
        assert catches(child.pid, signal.SIGTERM) is hears
        child.kill()


def test_who_cannot_be_asked_is_taken_to_hear() -> None:
    assert catches(2**22 + 1, signal.SIGTERM)
