"""The way to the terminal: never blocks who writes, and lets go when the terminal is gone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest

from tui.app.outlet import Outlet

PICTURE = "x" * 100_000


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.005)


@pytest.fixture
def pipe() -> tuple[int, int]:
    return os.pipe()


def read_all(fd: int, count: int) -> bytes:
    out = b""
    while len(out) < count and (piece := os.read(fd, 65536)):
        out += piece
    return out


def test_everything_written_arrives_in_order(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1])
    for number in range(500):
        outlet.write(f"{number:04d}é")
    expected = "".join(f"{number:04d}é" for number in range(500)).encode()
    assert read_all(pipe[0], len(expected)) == expected
    assert outlet.drain(5)
    assert outlet.unsent_bytes == 0


def test_a_reader_that_reads_nothing_does_not_block_the_writer(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1])
    for _ in range(10):
        outlet.write(PICTURE, picture=True)
    assert outlet.unsent_bytes > 900_000 - 65_536
    assert not outlet.drain(0.01)


def test_pictures_can_be_dropped_and_all_else_still_comes(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1])
    outlet.write("<modes>")
    for _ in range(10):
        outlet.write(PICTURE, picture=True)
    outlet.write("<cursor>")
    until(lambda: outlet.unsent_bytes < 1_000_000)
    outlet.drop_pictures()
    outlet.write("<restored>")
    assert outlet.unsent_bytes < 65_536 + 1024
    os.set_blocking(pipe[0], True)
    got = b""
    until_end = b"<cursor><restored>"
    while not got.endswith(until_end):
        got += os.read(pipe[0], 65536)
    assert got.startswith(b"<modes>")


def test_a_terminal_that_is_gone_is_noticed(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1])
    os.close(pipe[0])
    outlet.write(PICTURE)
    until(lambda: outlet.broken)
    assert outlet.unsent_bytes == 0
    outlet.write(PICTURE)
    assert outlet.unsent_bytes == 0
    assert not outlet.drain(5)


def test_a_closed_outlet_takes_no_more(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1])
    outlet.write("last")
    assert outlet.drain(5)
    outlet.close()
    outlet.write("late")
    assert outlet.unsent_bytes == 0
