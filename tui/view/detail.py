"""All that is known of one checkpoint: the page behind its row."""

from __future__ import annotations

from collections.abc import Iterator

from tui.model.checkpoint import Checkpoint, CheckpointState, Layout, Verification, Verifying
from tui.model.reading import Known
from tui.model.snapshot import Snapshot
from tui.model.text import harmless
from tui.view import glyphs, states
from tui.view.checked import amount, pace, progress, verifying
from tui.view.compose import cell, drawn, drawn_text, words, wrapped
from tui.view.numbers import age, counted, grouped, size, time_of_day
from tui.view.rows import Look, Role, Row, Span
from tui.view.saving import advice_lines

_LABEL = 14
_CONVERTERS = {
    Layout.FSDP: "convert_fsdp_to_hf.py",
    Layout.MEGATRON: "convert_torch_dist_to_hf.py",
    Layout.LORA: "none needed: the adapter folder holds PEFT files",
}


def title(checkpoint: Checkpoint | None, look: Look) -> str:
    return drawn_text(f"Checkpoint {checkpoint.iteration}" if checkpoint else "Checkpoint", look)


def selected(snapshot: Snapshot, iteration: int | None) -> Checkpoint | None:
    """The checkpoint of that number, else the newest; None when there is none."""
    if not isinstance(snapshot.checkpoints, Known):
        return None
    all_of_them = snapshot.checkpoints.value.checkpoints
    found = (each for each in all_of_them if each.iteration == iteration)
    return next(found, all_of_them[0] if all_of_them else None)


def rows(snapshot: Snapshot, width: int, height: int, look: Look) -> tuple[Row, ...]:
    each = selected(snapshot, look.selected_iteration)
    if each is None:
        return drawn((words("there is no checkpoint", Role.MUTED),), width, height, look)
    glyph, role = states.CHECKPOINT[each.state]
    lines: list[tuple[str, str, Role]] = [
        ("state", f"{glyph} {each.state.value}", role),
        ("why", each.reason, Role.TEXT),
        ("missing", ", ".join(each.missing), Role.WARNING),
        *_numbers(each),
        ("size", size(each.size_bytes), Role.VALUE),
        ("parameters", _parameters(each), Role.VALUE),
        ("taken", _taken(snapshot, each, look), Role.VALUE),
        ("data position", "saved" if each.has_data_state else _NO_DATA, Role.TEXT),
        ("layout", each.layout.value, Role.TEXT),
        ("converter", _converter(each), Role.TEXT),
        ("folder", each.path, Role.MUTED),
        *_verifying(verifying(snapshot, each)),
        *_checked(snapshot, each.verification),
        *_advice(snapshot),
    ]
    told: list[Row] = []
    for label, text, text_role in lines:
        if text:
            told += _labelled(label, harmless(text), text_role, width)
    return drawn(tuple(told), width, height, look)


_NO_DATA = "missing: a resume starts the data order again"


def _labelled(label: str, text: str, role: Role, width: int) -> list[Row]:
    pieces = wrapped(text, max(8, width - _LABEL)) or ("",)
    first: Row = (cell(label, _LABEL, Role.LABEL), Span(pieces[0], role))
    return [first, *((Span(" " * _LABEL), Span(piece, role)) for piece in pieces[1:])]


def _numbers(each: Checkpoint) -> tuple[tuple[str, str, Role], ...]:
    after = f"rollout {grouped(each.after_rollout)}" if each.after_rollout >= 0 else "unknown"
    resumes = f"rollout {grouped(each.resumes_at)}"
    if each.tracked:
        resumes += ", and it is the one a resume loads"
    return (("taken after", after, Role.VALUE), ("resumes at", resumes, Role.VALUE))


def _parameters(each: Checkpoint) -> str:
    count = each.parameter_count
    if count is None:
        return ""
    return f"{grouped(count)} ({count / 1e9:.2f} B)" if count >= 1e7 else grouped(count)


def _taken(snapshot: Snapshot, each: Checkpoint, look: Look) -> str:
    at = time_of_day(each.taken_at, look.utc_offset_s)
    return f"{age(snapshot.now - each.taken_at)} ago, at {at}"


def _converter(each: Checkpoint) -> str:
    if each.state is not CheckpointState.WHOLE:
        return "not before it is whole"
    return _CONVERTERS.get(each.layout, "")


def _advice(snapshot: Snapshot) -> Iterator[tuple[str, str, Role]]:
    for place, line in enumerate(advice_lines(snapshot)):
        yield ("" if place else "saving", line, Role.TEXT)


def _verifying(current: Verifying | None) -> list[tuple[str, str, Role]]:
    if current is None:
        return []
    if current.fault:
        return [("verify", f"{glyphs.UNKNOWN} no result: {current.fault}", Role.WARNING)]
    told = [f"{glyphs.BUSY} {progress(current)}"]
    if (known_pace := pace(current)) is not None:
        told += [amount(current), *known_pace]
    return [("verify", ", ".join(told), Role.BUSY)]


def _checked(snapshot: Snapshot, seen: Verification | None) -> list[tuple[str, str, Role]]:
    if seen is None:
        return [("checked", "never; its bytes are taken on trust", Role.MUTED)]
    told = f"{seen.soundness.value}, {age(snapshot.now - seen.at)} ago"
    if seen.checked_bytes:
        told += f", {size(seen.checked_bytes)} in {age(seen.seconds)}"
    lines = [("checked", told, Role.VALUE)]
    if seen.non_finite:
        told = f"{glyphs.BAD} {counted(seen.non_finite, 'value')} of the model nan or inf"
        lines.append(("", told, Role.BAD))
    lines += [("", f"{glyphs.BAD} {fault}", Role.BAD) for fault in seen.faults]
    return lines
