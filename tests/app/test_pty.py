"""The screen in a real terminal: what it sends, how it leaves, and what it withstands."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pyte
import pytest

pytestmark = pytest.mark.pty

CHILD = Path(__file__).parent / "pty_child.py"
DEADLINE_S = 200.0
QUIET_UPDATE_BYTES = 2048
SCROLLING_UPDATE_BYTES = 4096

ALLOWED = re.compile(
    r"\x1b\[[0-9;]*m"  # colour
    r"|\x1b\[\d+;\d+H"  # cursor
    r"|\x1b\[\?(?:25|7|1000|1003|1004|1006|1015|1016|1049|2004|2026|2048)[hl]"  # modes
    r"|\x1b\[\?(?:2026|2048)\$p"  # questions
    r"|\x1b\[<u"  # keyboard protocol off
    r"|\x1b\]22;[a-z]*\x07"  # shape of the mouse pointer
    r"|[\r\n\x18]"
)


class Box:
    """A terminal of some size with a screen running in it."""

    def __init__(self, scenario: str, *, size: tuple[int, int] = (160, 50), **env: str) -> None:
        self.master, slave = os.openpty()
        self.steps_in, self.steps = os.pipe()
        self.raw = b""
        self.screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self.screen)
        self.resize(*size)
        inherited = {k: v for k, v in os.environ.items() if k not in ("COLORTERM", "NO_COLOR")}
        self.process = subprocess.Popen(
            [sys.executable, str(CHILD), scenario],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            pass_fds=(self.steps_in,),
            env={
                **inherited,
                "TERM": "xterm-256color",
                "LANG": "C.UTF-8",
                "PYTHONPATH": str(CHILD.parents[1]),
                "MILEPOST_STEPS": str(self.steps_in),
                "MILEPOST_CONTROLLED": "1",
                **env,
            },
        )
        os.close(slave)

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.screen.resize(height, width)

    def text(self) -> str:
        return "\n".join(self.screen.display)

    def read(self, limit: int = 65536) -> None:
        """Take what the terminal was sent, waiting a moment for it."""
        if select.select([self.master], [], [], 0.05)[0]:
            try:
                piece = os.read(self.master, limit)
            except OSError:
                return
            self.raw += piece
            self._stream.feed(piece)

    def until(self, condition: Callable[[], object]) -> None:
        limit = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < limit, f"never came true; the screen:\n{self.text()}"
            self.read()

    def sees(self, text: str) -> None:
        self.until(lambda: text in self.text())

    def settles(self) -> None:
        """Read until nothing comes any more."""
        length = -1
        while length != len(self.raw):
            length = len(self.raw)
            for _ in range(8):
                self.read()

    def step(self) -> None:
        os.write(self.steps, b".")

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def ends(self) -> int:
        """Its exit code, once it has ended; what it sends meanwhile is read."""
        self.until(lambda: self.process.poll() is not None)
        self.settles()
        return self.process.returncode

    def ends_unread(self) -> int:
        return self.process.wait(DEADLINE_S)

    def modes(self) -> dict[str, bool]:
        """The private modes as the terminal was left with."""
        return {
            mode.decode(): state == b"h"
            for mode, state in re.findall(rb"\x1b\[\?(\d+)([hl])", self.raw)
        }

    def is_clean(self) -> bool:
        return {mode for mode, on in self.modes().items() if on} <= {"25", "7"} and self.modes()[
            "25"
        ]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in (self.master, self.steps, self.steps_in):
            try:
                os.close(fd)
            except OSError:
                continue


@pytest.fixture
def box() -> Iterator[Callable[..., Box]]:
    opened: list[Box] = []

    def make(scenario: str = "seconds", **options: object) -> Box:
        opened.append(Box(scenario, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield make
    for each in opened:
        each.close()


MakeBox = Callable[..., Box]


class TestLeaving:
    def test_q_leaves_a_clean_terminal(self, box: MakeBox) -> None:
        on = box()
        on.sees("RUNNING")
        assert not on.is_clean()
        on.press("q")
        assert on.ends() == 0
        assert on.is_clean()

    @pytest.mark.parametrize(
        ("number", "code"),
        [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)],
        ids=["SIGTERM", "SIGHUP", "SIGINT"],
    )
    def test_a_signal_leaves_a_clean_terminal(
        self, box: MakeBox, number: signal.Signals, code: int
    ) -> None:
        on = box()
        on.sees("RUNNING")
        on.process.send_signal(number)
        assert on.ends() == code
        assert on.is_clean()

    @pytest.mark.parametrize("key", ["q", "\x03"], ids=["q", "ctrl+c"])
    def test_a_source_that_hangs_does_not_hold_the_exit(self, box: MakeBox, key: str) -> None:
        on = box("hanging")
        on.sees("RUNNING")
        on.press(key)
        assert on.ends() == 0
        assert on.is_clean()

    @pytest.mark.parametrize("controlled", ["1", ""], ids=["hangup", "no signal"])
    def test_a_closed_terminal_ends_it(self, box: MakeBox, controlled: str) -> None:
        on = box(MILEPOST_CONTROLLED=controlled)
        on.sees("RUNNING")
        os.close(on.master)
        assert on.ends_unread() == 129

    def test_a_fault_of_ours_is_told_on_a_clean_terminal(self, box: MakeBox) -> None:
        on = box("broken")
        on.sees("RUNNING")
        on.step()
        assert on.ends() == 1
        assert on.is_clean()
        assert b"AttributeError" in on.raw.rpartition(b"\x1b[?1049l")[2]

    def test_the_start_page_asks_for_the_demo(self, box: MakeBox) -> None:
        on = box("empty")
        on.sees("No Miles run was found")
        on.press("d")
        assert on.ends() == 255
        assert on.is_clean()

    def test_suspending_and_coming_back(self, box: MakeBox) -> None:
        on = box()
        on.sees("RUNNING")
        on.press("\x1a")
        stat = Path(f"/proc/{on.process.pid}/stat")
        on.until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
        on.settles()
        assert on.is_clean()
        on.screen.reset()
        on.process.send_signal(signal.SIGCONT)
        on.sees("RUNNING")
        on.press("q")
        assert on.ends() == 0
        assert on.is_clean()

    def test_a_stray_sigcont_does_no_harm(self, box: MakeBox) -> None:
        on = box()
        on.sees("RUNNING")
        on.process.send_signal(signal.SIGCONT)
        on.settles()
        on.press("q")
        assert on.ends() == 0


class TestSlowTerminal:
    def test_one_that_takes_nothing_neither_fills_memory_nor_holds_the_exit(
        self, box: MakeBox
    ) -> None:
        on = box("scrolling")
        on.sees("RUNNING")
        before = self.resident_bytes(on)
        for _ in range(9000):
            on.step()
        self.until_steps_are_taken(on)
        # A peak is no leak: what pictures cost is given back, what waits for the terminal is not.
        limit = time.monotonic() + DEADLINE_S
        while self.resident_bytes(on) - before > 24 * 2**20:
            assert time.monotonic() < limit
            time.sleep(0.05)
        on.press("q")
        assert on.ends_unread() == 0

    def test_one_that_takes_little_gets_whole_pictures_and_the_newest(self, box: MakeBox) -> None:
        on = box("scrolling")
        on.sees("RUNNING")
        for _ in range(300):
            on.step()
            on.read(1000)
        on.sees("line 359")
        assert "14:07:11" in on.screen.display[0]

    @staticmethod
    def resident_bytes(on: Box) -> int:
        pages = int(Path(f"/proc/{on.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @staticmethod
    def until_steps_are_taken(on: Box) -> None:
        limit = time.monotonic() + DEADLINE_S
        while struct.unpack("i", fcntl.ioctl(on.steps_in, termios.FIONREAD, b"\0" * 4))[0]:
            assert time.monotonic() < limit
            time.sleep(0.02)


class TestBytes:
    def cost(self, on: Box, steps: int) -> list[int]:
        """Bytes of each of so many updates at the full size."""
        on.sees("14:02:11")
        on.settles()
        out = []
        for second in range(12, 12 + steps):
            before = len(on.raw)
            on.step()
            on.sees(f"14:02:{second}")
            on.settles()
            out.append(len(on.raw) - before)
        return out

    def test_a_quiet_second_is_cheap(self, box: MakeBox) -> None:
        costs = self.cost(box(), 5)
        assert min(costs) > 0
        assert max(costs) < QUIET_UPDATE_BYTES

    def test_a_line_of_log_a_second_is_bearable(self, box: MakeBox) -> None:
        assert max(self.cost(box("scrolling"), 3)) < SCROLLING_UPDATE_BYTES

    def test_without_news_nothing_is_sent(self, box: MakeBox) -> None:
        on = box()
        on.sees("RUNNING")
        on.settles()
        before = len(on.raw)
        for _ in range(20):
            on.read()
        assert len(on.raw) == before


class TestWhatIsSent:
    @staticmethod
    def forms(raw: bytes) -> set[str]:
        """The kinds of control sequence in it: numbers left out, all colours one."""
        found = (re.sub(r"\d+", "N", form) for form in ALLOWED.findall(raw.decode()))
        return {"colour" if form.endswith("m") else form for form in found}

    @staticmethod
    def visit_everything(on: Box) -> None:
        """Panes, zoom, a filter, the palette, the help, and the end."""
        on.sees("Checkpoints")
        for keys in ("6", "z", "\x1b", "5", "z", "\x1b", "/[/]\r", "\x1b", ":", "\x1b", "?", "?"):
            on.settles()
            on.press(keys)
            on.step()
        on.settles()
        on.press("q")
        assert on.ends() == 0

    def test_hostile_text_brings_no_sequence_of_its_own(self, box: MakeBox) -> None:
        hostile, tame = box("hostile"), box("scrolling")
        self.visit_everything(hostile)
        self.visit_everything(tame)
        left = set(ALLOWED.sub("", hostile.raw.decode()))
        assert not [c for c in left if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
        assert self.forms(hostile.raw) <= self.forms(tame.raw) | {"\x18"}

    def test_library_noise_is_held_back_and_told_at_the_end(self, box: MakeBox) -> None:
        on = box("noisy")
        on.sees("RUNNING")
        on.step()
        on.settles()
        assert b"NOISE" not in on.raw
        assert b"WARNED" not in on.raw
        on.press("q")
        assert on.ends() == 0
        after = on.raw.rpartition(b"\x1b[?1049l")[2]
        assert b"library: WARNED-BY-LOG" in after
        assert b"WARNED-BY-PYTHON" in after

    def test_no_color_sends_no_colour(self, box: MakeBox) -> None:
        on = box(NO_COLOR="1")
        on.sees("RUNNING")
        on.settles()
        colours = {
            code for found in re.findall(rb"\x1b\[([0-9;]*)m", on.raw) for code in found.split(b";")
        }
        assert colours <= {b"0", b"1", b"2", b"4", b"7", b"39", b"49"}

    def test_a_terminal_that_is_not_utf_8_gets_ascii(self, box: MakeBox) -> None:
        on = box("hostile", PYTHONIOENCODING="latin-1")
        on.sees("Checkpoints")
        on.press("\x10")
        on.settles()
        assert on.raw.isascii()

    def test_256_colours_unless_more_are_promised(self, box: MakeBox) -> None:
        plain, rich = box(), box(COLORTERM="truecolor")
        for on in (plain, rich):
            on.sees("RUNNING")
        assert b"38;2;" not in plain.raw
        assert b"38;2;" in rich.raw

    def test_the_mouse_can_be_left_alone(self, box: MakeBox) -> None:
        on = box(MILEPOST_NO_MOUSE="1")
        on.sees("RUNNING")
        assert not {"1000", "1003", "1006", "1015"} & set(on.modes())


class TestResizing:
    def test_a_storm_ends_in_the_picture_of_the_last_size(self, box: MakeBox) -> None:
        on = box()
        on.sees("6 Log")
        for step in range(80):
            on.resize(30 + (step * 37) % 150, 6 + (step * 11) % 50)
            on.process.send_signal(signal.SIGWINCH)
            on.read()
        on.resize(80, 24)
        on.process.send_signal(signal.SIGWINCH)
        on.until(lambda: "61/200" in on.screen.display[0] and "help" in on.screen.display[23])
        on.sees("2 Steps")


class TestRefusals:
    @pytest.mark.parametrize("term", ["dumb", ""])
    def test_a_terminal_that_cannot_show_it(self, box: MakeBox, term: str) -> None:
        on = box(TERM=term)
        assert on.ends() == 2
        assert "milepost status" in on.text()
        assert b"\x1b" not in on.raw

    def test_no_terminal_at_all(self) -> None:
        done = subprocess.run(
            [sys.executable, str(CHILD), "seconds"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(CHILD.parents[1])},
            check=False,
        )
        assert done.returncode == 2
        assert "needs a terminal" in done.stdout
