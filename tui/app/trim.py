"""Send the changed cells of a line, not the line up to them.

Textual 8.2 crops what it sends of a line on the right only (`ChopsUpdate.render_segments`): for a
clock at the end of a line it sends the whole line, each second. Cropped on both sides, a quiet
update is a fifth of the bytes.
"""

from __future__ import annotations

from rich.console import Console
from rich.control import Control
from textual._compositor import ChopsUpdate


class TrimmedUpdate(ChopsUpdate):
    """A partial update of the screen that starts where the change starts."""

    def render_segments(self, console: Console) -> str:
        out: list[str] = []
        for y, first, last in self.spans:
            for end, (start, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=True):
                left, right = max(start, first), min(end, last)
                if strip is not None and left < right:
                    out.append(Control.move_to(left, y).segment.text)
                    out.append(strip.crop(left - start, right - start).render(console))
        return "".join(out)


def trimmed(update: ChopsUpdate) -> TrimmedUpdate:
    """The same update, smaller."""
    return TrimmedUpdate(update.chops, update.spans, update.chop_ends)
