"""The two lines that frame the screen: the run's answer above, the keys below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby, pairwise

from tui.app.command import Command
from tui.app.keys import shown
from tui.app.panes.canvas import Canvas
from tui.model.snapshot import Snapshot
from tui.view import footer, header
from tui.view.rows import Look, Row

Keys = Mapping[str, tuple[str, ...]]


class HeaderBar(Canvas):
    """What the run does, in one or two rows."""

    def __init__(self) -> None:
        super().__init__("header")
        self._snapshot = Snapshot()
        self._look = Look()

    def show(self, snapshot: Snapshot, look: Look) -> None:
        """Bring the picture up to this snapshot."""
        self._snapshot, self._look = snapshot, look
        self.told = True
        self.redraw()

    def drawn(self) -> tuple[Row, ...]:
        width, height = self.size
        if not self.told or not width:
            return ()
        return header.rows(self._snapshot, width, height, self._look)


class FooterBar(Canvas):
    """The keys worth knowing, as many as fit."""

    def __init__(self, commands: Iterable[Command], keys: Keys) -> None:
        super().__init__("footer")
        self._hints = _hints(commands, keys)
        self._look = Look()

    def show(self, look: Look) -> None:
        """Draw for this look."""
        self._look = look
        self.redraw()

    def drawn(self) -> tuple[Row, ...]:
        width = self.size.width
        return (footer.row(self._hints, width, self._look),) if width else ()


def _hints(commands: Iterable[Command], keys: Keys) -> tuple[footer.Hint, ...]:
    """What acts first, then by importance; commands of the same label are one hint."""
    shown_ones = (c for c in commands if c.footer_rank is not None and keys[c.name])
    ranked = sorted(shown_ones, key=_place)
    return tuple(
        footer.Hint(
            key=_range(sorted(shown(keys[command.name][0]) for command in group)),
            label=group[0].label,
            short=group[0].short_label,
            rank=group[0].footer_rank or 0,
        )
        for group in (list(alike) for _, alike in groupby(ranked, key=_place))
    )


def _place(command: Command) -> tuple[bool, int, str]:
    return not command.dangerous, command.footer_rank or 0, command.label


def _range(keys: list[str]) -> str:
    """`1-6` for keys that follow one another, `a/g` for others."""
    following = all(len(key) == 1 for key in keys) and all(
        ord(b) - ord(a) == 1 for a, b in pairwise(keys)
    )
    return f"{keys[0]}-{keys[-1]}" if following and len(keys) > 1 else "/".join(keys)
