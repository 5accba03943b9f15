"""Lines of a black box: what is written is read back, and what is damaged is not."""

from __future__ import annotations

import zlib
from dataclasses import replace

import fakes
import pytest
from anything import anything
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from recorded import box, moment

from tui.guard.records import (
    LINE_BYTES,
    Dropped,
    Ended,
    Record,
    Session,
    Words,
    read,
    written,
)
from tui.guard.sample import Moment, sample_of
from tui.model.reading import Absence, Unknown
from tui.model.snapshot import Snapshot

SLOW = settings(
    suppress_health_check=list(HealthCheck),
    deadline=None,
    max_examples=80,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
TEXT = st.text(max_size=160) | st.just("\ud800\x00\n\r\u2028👩‍🚀" * 20)
OTHERS: list[Record] = [
    Words(at=1.0, source="trainer", text="step 3: {…}\n"),
    Dropped(at=9.0, since=1.0, count=3, reason="No space left on device"),
    Ended(at=1.0),
    Session(
        at=1.0,
        uptime_s=2.0,
        began_uptime_s=2.0,
        pid=4242,
        utc_offset_s=-3600,
        box=box(),
        run="run-a-1f0c93ab",
        log="runs/plain.log",
        roster=((4100, "driver"), (4101, "trainer")),
    ),
]


@SLOW
@given(anything(Snapshot), st.floats(), st.floats(), st.floats())
def test_any_snapshot_becomes_a_line_and_the_same_sample_again(
    snapshot: Snapshot, at: float, uptime_s: float, asleep_s: float
) -> None:
    sample = sample_of(snapshot, Moment(at=at, uptime_s=uptime_s, asleep_s=asleep_s))
    line = written(sample)

    assert line.startswith(b"\n")
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 2
    assert len(line) <= LINE_BYTES
    assert read(line[1:]) == sample


@pytest.mark.parametrize("record", OTHERS)
def test_the_other_records_too(record: Record) -> None:
    assert read(written(record)[1:]) == record


@given(TEXT, TEXT)
def test_words_of_any_kind_stay_on_one_line(source: str, text: str) -> None:
    words = Words(at=1.0, source=source[:32], text=text[:160])
    line = written(words)

    assert line.count(b"\n") == 2
    assert len(line) <= LINE_BYTES
    assert read(line[1:]) == words


@given(st.data())
def test_a_line_with_one_byte_changed_is_no_record(data: st.DataObject) -> None:
    line = bytearray(written(sample_of(fakes.running(), moment(0.0)))[1:-1])
    where = data.draw(st.integers(0, len(line) - 1))
    line[where] ^= data.draw(st.integers(1, 255))

    assert read(bytes(line)) is None


@given(st.binary(max_size=400))
def test_any_bytes_at_all_are_read_without_a_fault(line: bytes) -> None:
    assert read(line) is None


@pytest.mark.parametrize("body", [b"[]", b"{}", b"null", b"[1,2,3,[],[],[],[],0,0,0]", b'["x"]'])
@pytest.mark.parametrize("letter", [b"s", b"b", b"w", b"d", b"e"])
def test_a_sound_line_of_another_shape_is_no_record(letter: bytes, body: bytes) -> None:
    assert read(b"%b%08x%b" % (letter, zlib.crc32(letter + body), body)) is None


def test_what_a_silent_source_said_last_is_not_kept() -> None:
    fault = Unknown(why=Absence.TIMED_OUT, reason="no answer for 9 s")
    silent = replace(fakes.running(), missed=dict.fromkeys(("memory", "gpu", "disk"), fault))
    sample = sample_of(silent, moment(0.0))

    assert sample.memory_available_bytes is None
    assert sample.gpus == ()
    assert sample.disk_free_bytes is None
    assert sample.doing.phase == "actor_train"


def test_an_idle_engine_does_not_keep_its_last_speed() -> None:
    assert sample_of(fakes.running(), moment(0.0)).engines[0].tokens_per_s == 0.0
    assert sample_of(fakes.generating(), moment(0.0)).engines[0].tokens_per_s == 3120.0
