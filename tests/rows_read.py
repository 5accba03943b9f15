"""Rows as a reader sees them."""

from __future__ import annotations

from collections.abc import Iterable

from tui.view.rows import Role, Row, plain


def lines(rows: Iterable[Row]) -> list[str]:
    return [plain(row).rstrip() for row in rows]


def text(rows: Iterable[Row]) -> str:
    return "\n".join(lines(rows))


def line_with(rows: Iterable[Row], part: str) -> str:
    """The first line that holds `part`."""
    return next(line for line in lines(rows) if part in line)


def roles_of(rows: Iterable[Row], part: str) -> set[Role]:
    """Roles of the spans that hold `part`."""
    return {span.role for row in rows for span in row if part in span.text}
