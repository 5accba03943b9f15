r"""What a black box holds, a line a record, each of which can be read without any other. Pure.

A line is a letter for its kind, eight hex digits of CRC-32 over all the rest, and JSON in ASCII. It
is written with a line feed before it and one behind, both its own: a byte that is damaged costs one
record, and wherever a write was torn, the record that follows begins a line.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tui.guard.sample import MIB, Doing, EngineSample, GpuSample, Sample
from tui.model.codec import decoded, encoded
from tui.model.snapshot import RunState

LINE_BYTES = 16 << 10
"""No line is longer; what is longer is no record."""
_CRC_CHARS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """The machine, as it is from one boot to the next."""

    boot_id: str = ""
    kernel: str = ""
    machine: str = ""
    host: str = ""
    product: str = ""
    bios: str = ""
    driver: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Who records what and where: said at the start of each file, and again when it changes."""

    at: float
    uptime_s: float
    began_uptime_s: float
    """When this recorder began; with its pid and the boot id it names the session."""
    pid: int
    utc_offset_s: int
    box: Box
    run: str
    log: str = ""
    roster: tuple[tuple[int, str], ...] = ()
    """Pid and role of the run's processes."""

    @property
    def name(self) -> tuple[str, int, float]:
        """The same for all that one recorder says of itself."""
        return self.box.boot_id, self.pid, self.began_uptime_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A line of the run's log that tells something. The log's own end may die with the box."""

    at: float
    source: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Samples could not be written for a while."""

    at: float
    since: float
    count: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The recorder ended in order."""

    at: float


Record = Sample | Session | Words | Dropped | Ended


def written(record: Record) -> bytes:
    """The record as it is appended to a file."""
    letter = _LETTERS[type(record)]
    content = _sample_row(record) if isinstance(record, Sample) else encoded(record)
    body = json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")
    return b"\n%b%08x%b\n" % (letter, zlib.crc32(letter + body), body)


def read(line: bytes) -> Record | None:
    """The record in a line, None where there is none, or none that is whole."""
    letter, crc, body = line[:1], line[1 : 1 + _CRC_CHARS], line[1 + _CRC_CHARS :].rstrip(b"\n")
    kind = _KINDS.get(letter)
    if kind is None or crc != b"%08x" % zlib.crc32(letter + body):
        return None
    try:
        content = json.loads(body)
        record: Record = _sample(content) if kind is Sample else decoded(content, kind)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError):
        return None
    return record


def _sample_row(sample: Sample) -> list[Any]:
    doing = sample.doing
    return [
        sample.at,
        _plain(sample.uptime_s),
        _plain(sample.asleep_s),
        [doing.state, doing.phase, doing.rollout, doing.trained, doing.step, *_end(doing)],
        [
            _mib(sample.memory_available_bytes),
            _mib(sample.memory_total_bytes),
            _mib(sample.swap_used_bytes),
            _plain(sample.pressure_ratio),
        ],
        [
            [
                _plain(gpu.utilisation_ratio),
                _plain(gpu.power_w),
                _plain(gpu.temperature_c),
                _plain(gpu.sm_clock_mhz),
                _mib(gpu.held_bytes),
            ]
            for gpu in sample.gpus
        ],
        [[each.label, each.state, _plain(each.tokens_per_s)] for each in sample.engines],
        sample.log_bytes,
        _plain(sample.line_age_s),
        _mib(sample.disk_free_bytes),
    ]


def _end(doing: Doing) -> list[Any]:
    """Nothing, for a bare process that goes on."""
    end = [doing.container, doing.exit_code, int(doing.oom_killed)]
    if doing.cause:
        return [*end, doing.cause]
    return [] if end == ["", None, 0] else end


def _sample(row: Any) -> Sample:
    at, uptime_s, asleep_s, doing, memory, gpus, engines, log_bytes, line_age_s, disk = row[:10]
    state, phase, rollout, trained, step = doing[:5]
    container, exit_code, oom_killed = doing[5:8] or ("", None, 0)
    (cause,) = doing[8:9] or ("",)
    available, total, swap, pressure = memory[:4]
    return Sample(
        at=float(at),
        uptime_s=float(uptime_s),
        asleep_s=float(asleep_s),
        doing=Doing(
            state=RunState(state),
            phase=str(phase),
            rollout=_int(rollout),
            trained=_int(trained),
            step=_int(step),
            container=str(container),
            exit_code=_int(exit_code),
            oom_killed=bool(oom_killed),
            cause=str(cause),
        ),
        memory_available_bytes=_bytes(available),
        memory_total_bytes=_bytes(total),
        swap_used_bytes=_bytes(swap),
        pressure_ratio=_float(pressure),
        gpus=tuple(
            GpuSample(
                utilisation_ratio=_float(device[0]),
                power_w=_float(device[1]),
                temperature_c=_float(device[2]),
                sm_clock_mhz=_float(device[3]),
                held_bytes=_bytes(device[4]),
            )
            for device in gpus
        ),
        engines=tuple(
            EngineSample(label=str(each[0]), state=str(each[1]), tokens_per_s=float(each[2]))
            for each in engines
        ),
        log_bytes=int(log_bytes),
        line_age_s=_float(line_age_s),
        disk_free_bytes=_bytes(disk),
    )


def _plain(value: float | None) -> float | None:
    """A number without the `.0` that tells nothing."""
    return int(value) if value is not None and value == int(value) else value


def _mib(size_bytes: int | None) -> int | None:
    return None if size_bytes is None else size_bytes // MIB


def _bytes(size_mib: Any) -> int | None:
    return None if size_mib is None else int(size_mib) * MIB


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _int(value: Any) -> int | None:
    return None if value is None else int(value)


_LETTERS: Mapping[type[Record], bytes] = {
    Sample: b"s",
    Session: b"b",
    Words: b"w",
    Dropped: b"d",
    Ended: b"e",
}
_KINDS: Mapping[bytes, type[Record]] = {letter: kind for kind, letter in _LETTERS.items()}
