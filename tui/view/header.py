"""Which run, how it does and how far it is: the row the eye lands on first, and one below it.

The first row answers; the second says why, since when progress is missing, and what is watched.
"""

from __future__ import annotations

from tui.model.progress import PhaseClock
from tui.model.reading import Known
from tui.model.snapshot import RunState, Snapshot
from tui.model.text import harmless
from tui.view import action, glyphs, guard, states
from tui.view.compose import GAP, Part, drawn, joined, packed, spread, words
from tui.view.numbers import age, ago, clock, day_and_time, duration, grouped, time_of_day
from tui.view.rows import Look, Role, Row, Span, row_width

_WIDE = 100


def rows(snapshot: Snapshot, width: int, height: int, look: Look) -> tuple[Row, ...]:
    """One row, or two where the height allows."""
    return drawn((_first(snapshot, width, look), _second(snapshot, width)), width, height, look)


def state_row(snapshot: Snapshot) -> Row:
    """`● RUNNING`, with a mark where it is degraded."""
    verdict = snapshot.verdict
    state = states.sign(states.RUN[verdict.state], verdict.state.value.upper())
    return (state, Span(f" {glyphs.WARNING}", Role.WARNING)) if _degraded(snapshot) else (state,)


def degraded_forms(snapshot: Snapshot) -> tuple[Row, ...]:
    """`degraded: codes`, short `degraded`; nothing for a state that is bad by itself."""
    if not _degraded(snapshot):
        return ()
    codes = ", ".join(dict.fromkeys(harmless(code) for code in snapshot.verdict.degraded))
    return (words(f"degraded: {codes}", Role.WARNING), words("degraded", Role.WARNING))


def _degraded(snapshot: Snapshot) -> bool:
    return bool(snapshot.verdict.degraded) and snapshot.verdict.state in states.UNDER_WAY


def phase_row(snapshot: Snapshot, clock_of: PhaseClock) -> Row:
    """`actor_train 0:34 of ~0:41`; the clock warns when no such phase took this long before."""
    elapsed = snapshot.now - clock_of.since
    told = snapshot.story.durations.get(clock_of.name)
    usual = told.median_s() if told else None
    longest = max(told.samples_s, default=None) if told else None
    late = longest is not None and elapsed > 1.5 * longest
    return (
        Span(f"{harmless(clock_of.name)} ", Role.TEXT),
        Span(clock(elapsed), Role.WARNING if late else Role.STRONG),
        *words(f" of ~{clock(usual)}" if usual is not None else "", Role.MUTED),
    )


def rollout_forms(snapshot: Snapshot) -> tuple[Row, ...]:
    """`rollout 61 of 200`, short `61/200`; nothing before the first."""
    story = snapshot.story
    if story.rollout is None:
        return ()
    number = grouped(story.rollout)
    total = total_rollouts(snapshot)
    value = Span(number, Role.STRONG)
    if total is None:
        return ((Span("rollout ", Role.LABEL), value),)
    return (
        (Span("rollout ", Role.LABEL), value, Span(f" of {grouped(total)}", Role.MUTED)),
        (value, Span(f"/{grouped(total)}", Role.MUTED)),
    )


def total_rollouts(snapshot: Snapshot) -> int | None:
    """`--num-rollout`, from the log's launch line or from what we attached to."""
    told = snapshot.story.launch.num_rollout
    return told if told is not None else snapshot.attachment.launch.num_rollout


def eta_forms(snapshot: Snapshot, utc_offset_s: int) -> tuple[Row, ...]:
    """`ETA 1 d 04 h, Tue 18:10`, short without the day."""
    forecast = snapshot.verdict.forecast
    if forecast is None:
        return ()
    end = day_and_time(snapshot.now + forecast.seconds, snapshot.now, utc_offset_s)
    short = (Span("ETA ", Role.LABEL), Span(duration(forecast.seconds), Role.VALUE))
    return ((*short, Span(f", {end}", Role.MUTED)), short)


def last_progress(snapshot: Snapshot) -> Row:
    """`last progress 3 s ago: actor_train 27/32`."""
    progress = snapshot.story.progress
    if progress is None:
        return words("no progress seen yet", Role.MUTED)
    limit = snapshot.verdict.stall_limit_s
    old = snapshot.now - progress.at
    late = limit is not None and old > limit and snapshot.verdict.state not in states.ENDED
    return (
        Span("last progress ", Role.LABEL),
        Span(ago(old), Role.WARNING if late else Role.VALUE),
        Span(f": {harmless(progress.what)}", Role.MUTED),
    )


def _first(snapshot: Snapshot, width: int, look: Look) -> Row:
    calm = snapshot.verdict.state in states.UNDER_WAY
    right = _right(snapshot, look, width)
    taken = row_width(right) + (3 if right else 1)
    number = rollout_forms(snapshot)
    rollout = Part(2, number if width >= _WIDE else number[-1:])
    doing = Part(3 if calm else 1, _doing(snapshot))
    parts = (
        Part(9, (words("milepost", Role.LABEL),), filler=True),
        Part(2, (words(harmless(snapshot.attachment.name), Role.STRONG),)),
        Part(0, (state_row(snapshot),)),
        Part(1, action.mark_forms(snapshot)),
        Part(5, degraded_forms(snapshot)),
        *((rollout, doing) if calm else (doing, rollout)),
        Part(4, eta_forms(snapshot, look.utc_offset_s) if calm else ()),
        guard.header_part(snapshot, look.utc_offset_s),
    )
    gap = GAP if width >= _WIDE else "  "
    row = packed(parts, width - taken, gap)
    if row_width(row) + taken > width:
        row, right = packed(parts, width - 1, gap), ()
    return spread((Span(" "), *row), right, width)


def _doing(snapshot: Snapshot) -> tuple[Row, ...]:
    """What it is doing now, or for how long it has been as bad as it is."""
    verdict, story = snapshot.verdict, snapshot.story
    if verdict.state in states.ENDED:
        return (words(ago(snapshot.now - verdict.since), Role.VALUE),)
    if verdict.state in states.UNDER_WAY:
        if story.phase is None:
            return ()
        row = phase_row(snapshot, story.phase)
        return (row, row[:2])
    if story.progress is None:
        return ()
    told = f"for {age(snapshot.now - story.progress.at)}"
    where = f" in {harmless(story.phase.name)}" if story.phase else ""
    return (words(told + where, Role.STRONG), words(told, Role.STRONG))


def _right(snapshot: Snapshot, look: Look, width: int) -> Row:
    """What is true of the monitor rather than the run, and the clock."""
    attachment = snapshot.attachment
    marks = []
    if attachment.demo:
        marks.append(words("demo", Role.BUSY))
    if attachment.read_only:
        marks.append(words("read-only", Role.LABEL))
    if not snapshot.live:
        marks.append(words("not live", Role.LABEL))
    time = words(time_of_day(snapshot.now, look.utc_offset_s), Role.MUTED)
    if width < 60:
        return joined(marks, " ")
    return (*joined((*marks, time), "  "), Span(" "))


def _second(snapshot: Snapshot, width: int) -> Row:
    parts = (
        Part(0, _why(snapshot)),
        Part(1, _progress_forms(snapshot)),
        Part(2, _attached(snapshot)),
    )
    return (Span(" "), *packed(parts, max(0, width - 1)))


def _why(snapshot: Snapshot) -> tuple[Row, ...]:
    """The cause or the reason, where the state alone does not say enough."""
    verdict = snapshot.verdict
    if verdict.state in states.UNDER_WAY or verdict.state is RunState.FINISHED:
        return ()
    told = verdict.cause.line if verdict.cause else verdict.reason
    return (words(harmless(told), states.RUN[verdict.state][1]),) if told else ()


def _progress_forms(snapshot: Snapshot) -> tuple[Row, ...]:
    row = last_progress(snapshot)
    return (row, row[:2]) if len(row) > 1 else (row,)


def _attached(snapshot: Snapshot) -> tuple[Row, ...]:
    """Longest: each thing watched; shortest: the one that tells most."""
    attachment = snapshot.attachment
    found = [
        (label, harmless(name))
        for label, name in (
            ("container", _container_name(snapshot)),
            ("pid", attachment.driver_pid.value if attachment.driver_pid else ""),
            ("log", attachment.log.value if attachment.log else ""),
        )
        if name
    ]
    told = [(Span(f"{label} ", Role.LABEL), Span(value, Role.MUTED)) for label, value in found]
    return tuple(joined(told[:count], "  ") for count in range(len(told), 0, -1))


def _container_name(snapshot: Snapshot) -> str:
    """Its name as Docker tells it, else what we attached to, an id cut to its usual length."""
    if isinstance(snapshot.container, Known) and snapshot.container.value.name:
        return snapshot.container.value.name
    found = snapshot.attachment.container
    if found is None:
        return ""
    return found.value[:12] if len(found.value) == 64 else found.value
