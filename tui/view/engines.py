"""Are the engines alive, really: the state of each, why we say so, when its tokens last moved."""

from __future__ import annotations

from collections import Counter

from tui.model.engine import EngineState, EngineVerdict
from tui.model.reading import Absence, Unknown, value_or
from tui.model.snapshot import Snapshot
from tui.model.text import harmless
from tui.view import glyphs, states
from tui.view.compose import (
    Part,
    cell,
    drawn,
    drawn_row,
    drawn_text,
    joined,
    packed,
    why_not,
    words,
)
from tui.view.numbers import age, ago, grouped, percent
from tui.view.rows import Look, Role, Row, Span

ALIVE = frozenset(
    {
        EngineState.STARTING,
        EngineState.GENERATING,
        EngineState.IDLE,
        EngineState.BUSY,
        EngineState.PAUSED,
        EngineState.RECOVERED,
    }
)
_WORST_FIRST = (
    EngineState.DEAD,
    EngineState.SUSPECT,
    EngineState.NO_TRAFFIC,
    EngineState.UNKNOWN,
    EngineState.RECOVERED,
    EngineState.STARTING,
    EngineState.BUSY,
    EngineState.GENERATING,
    EngineState.IDLE,
    EngineState.PAUSED,
)


def title(snapshot: Snapshot, look: Look) -> str:
    engines = snapshot.verdict.engines
    if not engines:
        return "Engines"
    alive = sum(engine.state in ALIVE for engine in engines)
    return drawn_text(f"Engines {glyphs.DOT} {alive} of {len(engines)} alive", look)


def rows(snapshot: Snapshot, width: int, height: int, look: Look) -> tuple[Row, ...]:
    notes = _notes(snapshot)
    engines = snapshot.verdict.engines
    if not engines:
        return drawn((words("no engine known yet", Role.MUTED), *notes), width, height, look)
    room = max(1, height - len(notes))
    each = min(3, max(1, room // len(engines)))
    shown, hidden = _shown(engines, room // each)
    body = [row for engine in shown for row in _engine(snapshot, engine, width, each)]
    if hidden:
        body.append(joined((words(f"… {len(hidden)} more:", Role.MUTED), _counts(hidden))))
    return drawn((*body, *notes), width, height, look)


def summary(snapshot: Snapshot, width: int, look: Look) -> Row:
    engines = snapshot.verdict.engines
    label = cell("Engines", 8, Role.LABEL)
    if not engines:
        return drawn_row((label, Span("none known yet", Role.MUTED)), width, look)
    worst = min(engines, key=lambda engine: _WORST_FIRST.index(engine.state))
    is_well = worst.state in ALIVE
    newest = max(engines, key=lambda engine: engine.tokens_moved_at)
    why = words(harmless(f"engine {worst.label}: {worst.reason}"), Role.TEXT)
    parts = (
        Part(0, (_counts(engines),)),
        Part(1, () if is_well else (why,)),
        Part(2, _last_tokens(snapshot, newest)),
    )
    return drawn_row((label, *packed(parts, width - 8, "  ")), width, look)


def _shown(
    engines: tuple[EngineVerdict, ...], room: int
) -> tuple[tuple[EngineVerdict, ...], tuple[EngineVerdict, ...]]:
    """All in their order where they fit, else the worst ones and a row for the rest."""
    if len(engines) <= room:
        return engines, ()
    ranked = sorted(engines, key=lambda engine: _WORST_FIRST.index(engine.state))
    kept = ranked[: max(0, room - 1)]
    return tuple(e for e in engines if e in kept), tuple(ranked[len(kept) :])


def _counts(engines: tuple[EngineVerdict, ...]) -> Row:
    counted = Counter(engine.state for engine in engines)
    return joined(
        (
            (states.sign(states.ENGINE[state], f"{counted[state]} {state.value}"),)
            for state in _WORST_FIRST
            if counted[state]
        ),
        "  ",
    )


def _engine(snapshot: Snapshot, engine: EngineVerdict, width: int, lines: int) -> tuple[Row, ...]:
    head = (
        cell(harmless(engine.label), 3, Role.LABEL),
        states.sign(states.ENGINE[engine.state], engine.state.value),
    )
    address = words(harmless(engine.url).removeprefix("http://"), Role.TEXT)
    reason = words(harmless(engine.reason), Role.TEXT)
    since = words(f"for {age(snapshot.now - engine.since)}", Role.MUTED) if engine.since else ()
    weights = _weights(engine)
    work = [Part(rank, forms) for rank, forms in enumerate(_work(snapshot, engine), 3)]
    if lines == 1:
        named = words(harmless(engine.url).rpartition(":")[2], Role.MUTED)
        parts = (Part(0, (head,)), Part(2, (address, named)), Part(1, (reason,)), *work)
        return (packed(parts, width),)
    top = packed((Part(0, (head,)), Part(1, (address,)), Part(2, (weights,))), width)
    told = joined((reason, since), ", ")
    if lines == 2:
        return top, (Span("   "), *packed((Part(0, (told, reason)), *work), width - 3))
    return top, (Span("   "), *told), (Span("   "), *packed(work, width - 3))


def _weights(engine: EngineVerdict) -> Row:
    if not engine.weight_version:
        return ()
    return (Span("weights ", Role.LABEL), Span(f"v{harmless(engine.weight_version)}", Role.VALUE))


def _work(snapshot: Snapshot, engine: EngineVerdict) -> tuple[tuple[Row, ...], ...]:
    """What it works at while it does; when it last did while it does not."""
    if engine.state in (EngineState.PAUSED, EngineState.DEAD, EngineState.STARTING):
        return (_last_tokens(snapshot, engine),)
    queued = engine.queued_requests
    return (
        (_pair("tokens/s", grouped(engine.throughput_tokens_per_s)),),
        (_pair("running", grouped(engine.running_requests)),),
        (_pair("queued", grouped(queued), Role.VALUE if queued else Role.MUTED),),
        (_pair("KV", percent(engine.token_usage_ratio)),),
        _token_age(snapshot, engine),
        (_pair("cache hits", percent(engine.cache_hit_ratio)),) if engine.cache_hit_ratio else (),
    )


def _pair(label: str, value: str, role: Role = Role.VALUE) -> Row:
    return (Span(f"{label} ", Role.LABEL), Span(value, role))


def _token_age(snapshot: Snapshot, engine: EngineVerdict) -> tuple[Row, ...]:
    if not engine.tokens_moved_at:
        return (words("no token seen yet", Role.MUTED),)
    return (_pair("last token", ago(snapshot.now - engine.tokens_moved_at)),)


def _last_tokens(snapshot: Snapshot, engine: EngineVerdict) -> tuple[Row, ...]:
    if not engine.tokens_moved_at:
        return (words("no token seen yet", Role.MUTED),)
    short = (
        Span("last tokens ", Role.LABEL),
        Span(ago(snapshot.now - engine.tokens_moved_at), Role.VALUE),
    )
    if engine.throughput_tokens_per_s <= 0:
        return (short,)
    rate = Span(f", {grouped(engine.throughput_tokens_per_s)}/s", Role.MUTED)
    return ((*short, rate), short)


def _notes(snapshot: Snapshot) -> tuple[Row, ...]:
    """Who says nothing, and where the router and the engines disagree.

    The router lags, so it is not taken at its word.
    """
    missed = snapshot.missed.get("engines")
    notes = [f"no fresh look at the engines: {why_not(missed)}"] if missed else []
    notes += _unanswered(snapshot)
    if snapshot.router is not None:
        notes += _lag(snapshot, value_or(snapshot.router.workers, None))
        if isinstance(snapshot.router.workers, Unknown):
            notes.append(f"router: {why_not(snapshot.router.workers)}")
    return tuple(words(note, Role.MUTED) for note in notes)


def _unanswered(snapshot: Snapshot) -> list[str]:
    """Engines that take a connection and then say nothing: what is shown of them is old."""
    silent = [
        (engine.probe.url, engine.probe.metrics)
        for engine in snapshot.engines
        if isinstance(engine.probe.metrics, Unknown)
        and engine.probe.metrics.why is Absence.TIMED_OUT
    ]
    return [
        f"{harmless(url).removeprefix('http://')} answers nothing: {why_not(fault)}, "
        f"asked {ago(snapshot.now - fault.at)}"
        for url, fault in silent
    ]


def _lag(snapshot: Snapshot, workers: tuple[str, ...] | None) -> list[str]:
    if not workers:
        return []
    listed = {worker.rstrip("/") for worker in workers}
    up = (EngineState.GENERATING, EngineState.IDLE)
    engines = [engine for engine in snapshot.verdict.engines if engine.url]
    dead = [e for e in engines if e.state is EngineState.DEAD and e.url in listed]
    unlisted = [e for e in engines if e.state in up and e.url not in listed]
    notes = [f"the router still lists engine {_named(dead)}; it lags"] if dead else []
    return notes + ([f"the router does not list engine {_named(unlisted)}"] if unlisted else [])


def _named(engines: list[EngineVerdict]) -> str:
    return ", ".join(harmless(engine.label) for engine in engines)
