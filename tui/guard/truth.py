"""A fact as far as it is known: yes, no, or cannot tell, with the words for it. Pure.

What cannot be told is never taken for a yes or a no: a source that is silent, or whose answer has
grown old, proves nothing of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Answer(StrEnum):
    """What a fact comes to."""

    YES = "yes"
    NO = "no"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One answer and its evidence."""

    answer: Answer
    line: str
    """What it rests on, or why nobody can tell."""
    at: float = 0.0
    """When what it tells of happened, in epoch seconds; 0.0: that is not the question."""

    @property
    def is_yes(self) -> bool:
        return self.answer is Answer.YES


def yes(line: str, at: float = 0.0) -> Fact:
    return Fact(answer=Answer.YES, line=line, at=at)


def no(line: str) -> Fact:
    return Fact(answer=Answer.NO, line=line)


def cannot_tell(line: str) -> Fact:
    return Fact(answer=Answer.CANNOT_TELL, line=line)
