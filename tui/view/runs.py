"""The runs of this machine as rows: what was found of each, and where each value came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tui.model.launch import Found, ListedRun
from tui.model.snapshot import Snapshot
from tui.model.text import harmless
from tui.view import glyphs, header
from tui.view.compose import Part, drawn, packed, words, wrapped
from tui.view.numbers import age, ago, counted
from tui.view.rows import Look, Role, Row, Span

_LABEL = 13
_INDENT = "  "


def rows(
    runs: Sequence[tuple[ListedRun, Snapshot]], notes: Iterable[str], width: int, look: Look
) -> tuple[Row, ...]:
    """Each run with what a glance at it told, then what was looked for in vain."""
    many = counted(len(runs), "run") if runs else "No Miles run"
    out: list[Row] = [words(f"{many} on this machine", Role.STRONG)]
    for run, snapshot in runs:
        out += [(), _head(run, snapshot, width), *found_rows(run, width)]
        engines = ", ".join(engine.url for engine in snapshot.story.engines if engine.url)
        out += _labelled("engines", engines and f"{engines} (its log)", width)
    out.append(())
    for note in notes:
        out += _labelled("looked for", note, width)
    return drawn(out, width, len(out), look)


def found_rows(run: ListedRun, width: int) -> Iterator[Row]:
    """What was found of a run, one value to a row where it fits."""
    attachment = run.attachment
    yield from _labelled("log", _with_source(attachment.log), width)
    yield from _labelled("checkpoints", _with_source(attachment.checkpoints), width)
    yield from _labelled("found by", "; ".join(run.found_by), width)
    for note in attachment.notes:
        yield from _labelled("note", note, width, Role.WARNING)


def age_words(run: ListedRun, now: float) -> str:
    """Since when it runs, empty when nothing says it."""
    return f"for {age(now - run.started_at)}" if run.started_at else ""


def written_words(run: ListedRun, now: float) -> str:
    """When something was last written to its log."""
    return f"log written {ago(now - run.log_written_at)}" if run.log_written_at else ""


def _head(run: ListedRun, snapshot: Snapshot, width: int) -> Row:
    since, written = age_words(run, snapshot.now), written_words(run, snapshot.now)
    parts = (
        Part(0, (words(harmless(run.attachment.name), Role.STRONG),)),
        Part(1, (header.state_row(snapshot),)),
        Part(2, header.rollout_forms(snapshot)),
        Part(3, (words(since, Role.MUTED),) if since else ()),
        Part(4, (words(written, Role.MUTED),) if written else ()),
        Part(5, (words(f"milepost {harmless(run.handle)}", Role.KEY),)),
    )
    return packed(parts, width)


def _with_source(found: Found | None) -> str:
    return f"{found.value} ({found.source})" if found is not None else glyphs.DASH


def _labelled(label: str, text: str, width: int, role: Role = Role.TEXT) -> Iterator[Row]:
    lead = label
    for line in wrapped(harmless(text), max(1, width - _LABEL - len(_INDENT))):
        yield (Span(f"{_INDENT}{lead:<{_LABEL}}", Role.LABEL), Span(line, role))
        lead = ""
