"""tqdm progress bars as Miles draws them, whole or glued to each other and to records."""

from __future__ import annotations

import re

BAR = re.compile(
    r"(?P<name>Rollout generation|Eval [\w./ -]{1,60}?|(?:ref_|teacher_)?log_probs"
    r"|(?:actor|critic)_train|(?:\[[\w-]{1,40}\] )?Update weights)"
    r": +(?P<percent>\d{1,3})%\|[^|]{0,80}\| (?P<done>\d{1,9})/(?P<total>\d{1,9}) \["
)
ANY_BAR = re.compile(r"\d{1,3}%\|[^|]{0,80}\| *\d+/\d+ \[|\d{1,3}% Completed \|")
BAR_END = re.compile(r"\[[^\]\[]{0,60}(?:it/s|s/it)[^\]\[]{0,60}\]")
"""The rest of a bar: a record may follow it without a break."""


def newest_bars(text: str) -> tuple[tuple[str, int, int], ...]:
    """(name, done, total) of the newest drawing of each bar on one physical line."""
    newest: dict[str, tuple[str, int, int]] = {}
    for bar in BAR.finditer(text):
        newest.pop(bar["name"], None)
        newest[bar["name"]] = (bar["name"], int(bar["done"]), int(bar["total"]))
    return tuple(newest.values())
