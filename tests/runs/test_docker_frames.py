"""Docker's multiplexed log stream: frames that are no lines, cut characters, foreign bytes."""

from __future__ import annotations

import pathlib

from hypothesis import given
from hypothesis import strategies as st

from tui.runs.docker_frames import LONGEST_LINE, FrameDemultiplexer


def frame(stream: int, payload: bytes) -> bytes:
    return bytes((stream, 0, 0, 0)) + len(payload).to_bytes(4, "big") + payload


def demultiplexed(*chunks: bytes) -> bytes:
    frames = FrameDemultiplexer()
    return b"".join(map(frames.feed, chunks)) + frames.flush()


def test_the_recorded_stream(data: pathlib.Path) -> None:
    text = demultiplexed((data / "cases" / "o17.log").read_bytes()).decode()
    lines = text.split("\n")
    assert lines[:2] == ["stdout line one", "stdout line two"]
    assert lines[2].startswith("[2026-11-20 18:00:00.000 actor_cell0_rank0] log_utils.py:542")
    assert "step 11: {'train/loss': 0.0021," in lines[2]
    assert lines[2].endswith("'train/step': 11}")
    assert lines[3] == "stderr between halves"
    assert lines[4] == "答案: café 🚀 → x² ≤ 4"
    assert lines[5:] == ["ABC", ""]


@given(st.lists(st.integers(1, 40)))
def test_any_cut_of_the_stream_gives_the_same_lines(sizes: list[int]) -> None:
    stream = (
        frame(1, "café 🚀".encode()[:7])
        + frame(2, b"one\ntwo\nth")
        + frame(1, "café 🚀".encode()[7:] + b"\n")
        + frame(2, b"ree\n")
        + frame(1, b"")
        + frame(3, b"engine error\n")
    )
    chunks, at = [], 0
    for size in sizes:
        chunks.append(stream[at : at + size])
        at += size
    whole = "one\ntwo\ncafé 🚀\nthree\nengine error\n".encode()
    assert demultiplexed(*chunks, stream[at:]) == whole


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_complaint(noise: bytes) -> None:
    demultiplexed(noise)
    demultiplexed(frame(1, b"line\n"), noise)


def test_a_bar_is_seen_while_it_moves() -> None:
    frames = FrameDemultiplexer()
    assert frames.feed(frame(2, b"train: 10%\rtrain: 20%\rtr")) == b"train: 10%\rtrain: 20%\r"
    assert frames.feed(frame(2, b"ain: 30%\r")) == b"train: 30%\r"


def test_the_last_line_needs_no_end() -> None:
    frames = FrameDemultiplexer()
    assert frames.feed(frame(1, b"out") + frame(2, b"err")) == b""
    assert frames.flush() == b"out\nerr\n"
    assert frames.flush() == b""


def test_bytes_that_are_no_frames_pass_unchanged() -> None:
    text = b"a terminal's own bytes\r\nmore of them\r\n"
    assert demultiplexed(text[:3], text[3:11], text[11:]) == text


def test_bytes_that_stop_being_frames_pass_from_there() -> None:
    assert demultiplexed(frame(1, b"whole\npart"), b"no frame at all") == (
        b"whole\npart\nno frame at all"
    )


def test_an_endless_line_is_passed_on_in_pieces() -> None:
    frames = FrameDemultiplexer()
    header = bytes((1, 0, 0, 0)) + (0xFFFF_FFFF).to_bytes(4, "big")
    passed = frames.feed(header)
    held = 0
    for _ in range(64):
        piece = frames.feed(b"x" * 65_536)
        passed += piece
        held += 65_536 - len(piece)
        assert held <= LONGEST_LINE
    assert len(passed) + held == 64 * 65_536


def stamped(second: int, text: bytes, stream: int = 1) -> bytes:
    return frame(stream, b"2026-11-29T12:00:%02d.000000001Z %s" % (second, text))


def unstamped(*pieces: bytes, now: float = 1_795_953_900.0) -> bytes:
    frames = FrameDemultiplexer(stamped=True, clock=lambda: now)
    return b"".join(map(frames.feed, pieces)) + frames.flush()


@given(st.lists(st.integers(1, 40)))
def test_what_a_rotation_replays_is_left_out_however_it_is_cut(sizes: list[int]) -> None:
    stream = b"".join(
        (
            stamped(1, b"one\n"),
            stamped(2, b"error\n", 2),
            stamped(3, b"a long line: "),
            stamped(3, b"its other piece\n"),
            stamped(2, b"error\n", 2),
            stamped(3, b"a long line: "),
            stamped(3, b"its other piece\n"),
            stamped(4, b"two\n"),
            frame(3, b"engine error\n"),
            frame(1, b"no stamp\n"),
            frame(1, b"no stamp, and long enough to hold one\n"),
        )
    )
    chunks, at = [], 0
    for size in sizes:
        chunks.append(stream[at : at + size])
        at += size
    assert unstamped(*chunks, stream[at:]) == (
        b"one\nerror\na long line: its other piece\ntwo\nengine error\nno stamp\n"
        b"no stamp, and long enough to hold one\n"
    )


def test_a_clock_set_back_silences_nothing() -> None:
    pieces = (stamped(50, b"before\n"), stamped(10, b"after\n"), stamped(11, b"more\n"))
    assert unstamped(*pieces, now=1_795_953_610.0) == b"before\nafter\nmore\n"


def test_a_stream_that_was_overtaken_is_no_replay() -> None:
    pieces = (stamped(2, b"error\n", 2), stamped(1, b"one\n"), stamped(3, b"two\n"))
    assert unstamped(*pieces) == b"error\none\ntwo\n"
