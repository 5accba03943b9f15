"""What a person probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """An ending for a refusal: the known word most like this one, or nothing."""
    near = difflib.get_close_matches(word, tuple(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""
