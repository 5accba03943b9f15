"""Acting on a run in a real terminal, from the key to the action that is under way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from terminal import Terminal

pytestmark = pytest.mark.pty

CHILD = Path(__file__).parent / "acting_child.py"
UPDATE_BYTES = 1024


def screen(size: tuple[int, int] = (160, 50)) -> Terminal:
    folders = f"{CHILD.parents[1]}:{CHILD.parents[2]}"
    return Terminal([sys.executable, str(CHILD)], size, PYTHONPATH=folders, TZ="UTC")


@pytest.mark.parametrize("size", [(160, 50), (80, 24), (40, 10)], ids=str)
def test_kill_and_resume_by_keys(size: tuple[int, int]) -> None:
    with screen(size) as terminal:
        terminal.shows("STALLED", "k kill")
        terminal.type("k")
        terminal.shows("looking…")
        terminal.shows("[ Cancel ]", "autopsy, then kill and resume")
        terminal.type("\t")
        terminal.shows("[ autopsy, then kill and resume ]")
        terminal.type("\r\r\r")
        terminal.shows("beginning…")
        terminal.shows("STALLED", "step 3 of 5")
        terminal.type("x")
        terminal.shows("Kill and resume run-a", "under way", "✓ 1 save")
        assert terminal.leave() == 0
        assert terminal.is_clean


def test_stopping_needs_the_name() -> None:
    with screen((80, 24)) as terminal:
        terminal.shows("STALLED")
        terminal.type("K")
        terminal.shows("type its name: run-a")
        terminal.type("run-a\r")
        terminal.shows("[ stop without saving ]")
        terminal.type("\x1b")
        terminal.until(lambda text: "stop without saving" not in text)
        assert terminal.leave() == 0
        assert terminal.is_clean


def test_the_mouse_presses_the_buttons() -> None:
    with screen() as terminal:
        terminal.shows("STALLED")
        terminal.type("k")
        lines = terminal.shows("[ Cancel ]", "autopsy, then kill and resume").splitlines()
        y, line = next((y, line) for y, line in enumerate(lines, 1) if "[ Cancel ]" in line)
        x = line.index("autopsy") + 3
        terminal.type(f"\x1b[<0;{x};{y}M\x1b[<0;{x};{y}m")
        terminal.shows("beginning…")
        terminal.shows("step 3 of 5")
        assert terminal.leave() == 0


def test_an_open_question_costs_little_while_the_run_goes_on() -> None:
    """What is behind it is sent again only where it changed."""
    with screen() as terminal:
        terminal.shows("STALLED")
        terminal.type("k")
        terminal.shows("[ Cancel ]", "autopsy, then kill and resume")
        terminal.wait(1.0)
        before, clocks = terminal.received_bytes, set()
        for _ in range(10):
            terminal.wait(0.2)
            clocks.add(terminal.screen.display[0][-10:])
        assert len(clocks) > 2
        assert (terminal.received_bytes - before) / len(clocks) < UPDATE_BYTES


def test_leaving_while_the_desk_works_does_not_wait_for_it() -> None:
    with screen() as terminal:
        terminal.shows("STALLED")
        terminal.type("k")
        terminal.shows("looking…")
        assert terminal.leave() == 0
        assert terminal.is_clean


def test_a_lost_connection_while_it_begins_ends_the_screen() -> None:
    with screen() as terminal:
        terminal.shows("STALLED")
        terminal.type("k")
        terminal.shows("[ Cancel ]", "autopsy, then kill and resume")
        terminal.type("\t\r")
        terminal.shows("beginning…")
        terminal.hang_up()
        assert terminal.ends() == 129
