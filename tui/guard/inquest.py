"""An incident, put into words: what is known, and nothing that is only guessed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tui.guard.exits import Confidence, Told, end_of_run, killed_for_memory
from tui.guard.incidents import HOLE_S, Incident, IncidentKind
from tui.guard.kernel_clues import KernelClue, KernelLine
from tui.guard.records import Words
from tui.guard.sample import Sample
from tui.guard.shortage import shortage
from tui.model.judge.standing import ENDED
from tui.model.judge.words import gib, span
from tui.model.reading import Known, Reading
from tui.model.text import harmless

_WITNESSED: Mapping[KernelClue, str] = {
    KernelClue.PANIC: "kernel panic",
    KernelClue.HEAT: "shut down for heat",
    KernelClue.ORDERLY: "shut down in order",
}
"""What the kernel says of a box that goes down, and is the cause."""
_KERNEL_LINES, _LOG_LINES = 8, 6
_EARLIER_S = 10.0
_FALL_BYTES_PER_S = 100 << 20
"""Slower is the usual coming and going."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostMortem:
    """What became of the box or the run."""

    kind: IncidentKind
    line: str
    """One line a tired person understands."""
    confidence: Confidence
    evidence: tuple[str, ...]
    from_at: float
    """Last time it was seen well."""
    until_at: float | None
    """First time it was looked at again; None: not yet."""
    samples: tuple[Sample, ...]
    """The last minute before."""


def told(
    incident: Incident, kernel: Reading[tuple[KernelLine, ...]], log: tuple[Words, ...]
) -> PostMortem:
    """What there is to say.

    Args:
        incident: what was recorded.
        kernel: telling lines of the kernel around it, or why they cannot be read.
        log: the last telling lines of the run's log before it.
    """
    lines = kernel.value if isinstance(kernel, Known) else ()
    offset_s = incident.session.utc_offset_s if incident.session else 0
    last = incident.before[-1]
    what = _what(incident, lines, _when(incident, offset_s))
    where = _where(last)
    return PostMortem(
        kind=incident.kind,
        line=harmless(f"{what.words}, {where}" if where else what.words),
        confidence=what.confidence,
        evidence=tuple(map(harmless, _evidence(incident, kernel, log, offset_s))),
        from_at=last.at,
        until_at=_until(incident),
        samples=incident.before,
    )


def _what(incident: Incident, lines: tuple[KernelLine, ...], when: str) -> Told:
    match incident.kind:
        case IncidentKind.BOX_DOWN:
            return _box_down(incident, lines, when)
        case IncidentKind.STOOD_STILL:
            return _stood_still(incident, lines, when)
        case IncidentKind.SLEPT:
            words = f"the box slept for {span(_hole_s(incident))} from {when}"
            return Told(words=words, confidence=Confidence.PROVEN)
        case IncidentKind.UNWATCHED:
            return _unwatched(incident, lines, when)
        case IncidentKind.RUN_DIED:
            end = end_of_run(incident, lines)
            return Told(words=f"the run died at {when}: {end.words}", confidence=end.confidence)
        case IncidentKind.PROCESS_KILLED:
            words = f"a process in the container was killed for memory at {when} (OOM flag)"
            killed = killed_for_memory(incident.roster, lines)
            words += f", {killed.words}" if killed else ""
            return Told(words=f"{words}; the container lives", confidence=Confidence.PROVEN)


def _box_down(incident: Incident, lines: tuple[KernelLine, ...], when: str) -> Told:
    seen = {line.clue for line in lines}
    for clue, cause in _WITNESSED.items():
        if clue in seen:
            words = f"the box went down at {when}, {cause} by kernel line"
            return Told(words=words, confidence=Confidence.PROVEN)
    short = shortage(incident.before)
    if short is not None and short.is_ending:
        words = f"the box went down at {when}, {short.words}"
        return Told(words=words, confidence=Confidence.LIKELY)
    words = f"the box went down at {when}, cause unknown"
    if incident.in_order:
        words = f"the box went down after {when}, when milepost had been ended; cause unknown"
    return Told(words=words, confidence=Confidence.UNKNOWN)


def _stood_still(incident: Incident, lines: tuple[KernelLine, ...], when: str) -> Told:
    hole = span(_hole_s(incident))
    short = shortage(incident.before)
    if short is not None and short.is_ending:
        words = f"the box stood still for {hole} from {when}, {short.words}"
        return Told(words=words, confidence=Confidence.LIKELY)
    if any(line.clue is KernelClue.LOCKUP for line in lines):
        words = f"the box stood still for {hole} from {when}, lockup by kernel line"
        return Told(words=words, confidence=Confidence.LIKELY)
    words = f"nothing was recorded for {hole} from {when}: unknown whether the box stood still or "
    return Told(words=f"{words}milepost was stopped", confidence=Confidence.UNKNOWN)


def _unwatched(incident: Incident, lines: tuple[KernelLine, ...], when: str) -> Told:
    ours = ((incident.session.pid, "milepost"),) if incident.session else ()
    killed = killed_for_memory(ours, lines)
    if killed is not None:
        words = f"milepost was killed at {when}, {killed.words}; the box stayed up"
        return Told(words=words, confidence=Confidence.PROVEN)
    words = f"milepost ended at {when} without a word, cause unknown; the box stayed up"
    return Told(words=words, confidence=Confidence.UNKNOWN)


def _hole_s(incident: Incident) -> float:
    assert incident.after is not None
    return incident.after.uptime_s - incident.before[-1].uptime_s


def clock(at: float, offset_s: int) -> str:
    """Time of day, `03:11:04`."""
    second = int(at + offset_s) % 86400
    return f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def _when(incident: Incident, offset_s: int) -> str:
    """`03:11`; of a run, if nobody looked for a while, `03:11 or later, by 03:20`."""
    last, after = incident.before[-1], incident.after
    when = clock(last.at, offset_s)[:5]
    if incident.kind not in (IncidentKind.RUN_DIED, IncidentKind.PROCESS_KILLED) or after is None:
        return when
    is_seen = after.uptime_s - last.uptime_s <= HOLE_S
    return when if is_seen else f"{when} or later, by {clock(after.at, offset_s)[:5]}"


def _until(incident: Incident) -> float | None:
    if incident.after is not None:
        return incident.after.at
    return incident.resumed.at if incident.resumed is not None else None


def _where(sample: Sample) -> str:
    """`during wake_up after rollout 61`, empty where nothing is known."""
    doing = sample.doing
    if doing.state in ENDED:
        return f"the run had {doing.state.value} before"
    rollout = "" if doing.rollout is None else f"rollout {doing.rollout}"
    if not doing.phase:
        return f"in {rollout}" if rollout else ""
    if not rollout:
        return f"during {doing.phase}"
    return f"during {doing.phase} {'after' if doing.trained == doing.rollout else 'of'} {rollout}"


def _evidence(
    incident: Incident,
    kernel: Reading[tuple[KernelLine, ...]],
    log: tuple[Words, ...],
    offset_s: int,
) -> Iterator[str]:
    first, last = incident.before[0], incident.before[-1]
    yield f"last sample {clock(last.at, offset_s)}: {_state_of_box(incident.before)}"
    if last.uptime_s - first.uptime_s >= _EARLIER_S and first.memory_available_bytes is not None:
        left = gib(first.memory_available_bytes)
        yield f"{span(last.uptime_s - first.uptime_s)} before: {left} of memory left"
    yield from _afterwards(incident, offset_s)
    if isinstance(kernel, Known):
        for line in kernel.value[-_KERNEL_LINES:]:
            yield f"kernel {clock(line.at, offset_s)}: {line.text}"
        if not kernel.value:
            yield "kernel: readable, and says nothing about it"
    else:
        yield f"kernel: cannot be read: {kernel.reason}"
    for words in log[-_LOG_LINES:]:
        yield f"log, {words.source}: {words.text}" if words.source else f"log: {words.text}"


def _state_of_box(samples: tuple[Sample, ...]) -> str:
    last, short = samples[-1], shortage(samples)
    told = ["memory unknown"]
    if short is not None:
        told = [f"{gib(short.left_bytes)} of {gib(short.total_bytes)} of memory left"]
        if short.fall_bytes_per_s >= _FALL_BYTES_PER_S:
            told.append(f"falling by {gib(short.fall_bytes_per_s)} a second")
    if last.swap_used_bytes:
        told.append(f"swap {gib(last.swap_used_bytes)}")
    for index, gpu in enumerate(last.gpus):
        if gpu.utilisation_ratio is not None:
            told.append(f"GPU {index} {gpu.utilisation_ratio * 100:.0f} %")
        readings = ((gpu.power_w, "W"), (gpu.temperature_c, "°C"), (gpu.sm_clock_mhz, "MHz"))
        told += [f"{value:.0f} {unit}" for value, unit in readings if value is not None]
    told += [f"engine {each.label} {each.state}" for each in last.engines]
    return ", ".join(told)


def _afterwards(incident: Incident, offset_s: int) -> Iterator[str]:
    last, after, resumed = incident.before[-1], incident.after, incident.resumed
    if incident.kind is IncidentKind.BOX_DOWN and resumed is not None:
        booted_at = resumed.at - resumed.uptime_s
        later = span(max(0.0, booted_at - last.at))
        yield f"started again {clock(booted_at, offset_s)}, {later} later"
        yield from _changed(incident)
    elif after is not None and incident.kind in (IncidentKind.STOOD_STILL, IncidentKind.SLEPT):
        grown = after.log_bytes - last.log_bytes
        log = f"the log grew by {grown / 1e6:.1f} MB" if grown > 0 else "the log had not grown"
        yield f"recorded again {clock(after.at, offset_s)}; {log}"


def _changed(incident: Incident) -> Iterator[str]:
    """A box that comes back with another kernel or driver was perhaps updated."""
    if incident.session is None or incident.resumed is None:
        return
    before, now = incident.session.box, incident.resumed.box
    for name in ("kernel", "driver", "bios"):
        old, new = getattr(before, name), getattr(now, name)
        if old and new and old != new:
            yield f"{name} {old} before, {new} now"
