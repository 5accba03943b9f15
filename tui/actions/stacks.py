"""What processes are at, by their stacks: py-spy's answer read, equal ones put together. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_MAIN = "MainThread"
_IDLE = frozenset(
    {"select", "poll", "wait", "sleep", "accept", "get", "recv", "recv_bytes", "run_once"}
)
"""Functions that wait for something to do, whatever class they are of."""
_LOOKED_THROUGH = 6
_MOST_LABELS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One call."""

    function: str
    file: str
    line: int

    @property
    def is_idle(self) -> bool:
        """It only waits for something to do."""
        return self.function.rpartition(".")[2].lstrip("_") in _IDLE

    def __str__(self) -> str:
        return f"{self.function} ({self.file}:{self.line})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """One thread's calls, the innermost first."""

    name: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One process as it was found."""

    pid: int
    label: str
    """`FSDPTrainRayActor.train`, `sglang::scheduler`, `driver`."""
    state: str = ""
    """The kernel's letter for it."""
    waits_in: str = ""
    """The kernel function that it waits in."""
    threads: tuple[Thread, ...] = ()
    fault: str = ""
    """Why there is no Python stack."""

    @property
    def at(self) -> tuple[str, ...]:
        """Its calls, the innermost first: Python's, else the kernel's function."""
        if thread := telling(self.threads):
            return tuple(map(str, thread.frames))
        return (self.waits_in,) if self.waits_in else ()

    @property
    def doing(self) -> str:
        """The call that says what it is at: how a wait is done says little."""
        if thread := telling(self.threads):
            frames = thread.frames[:_LOOKED_THROUGH]
            return next((each for each in frames if not each.is_idle), frames[0]).function
        return self.waits_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Processes that are at the same."""

    at: tuple[str, ...]
    sights: tuple[Sight, ...]

    @property
    def line(self) -> str:
        """`3 in all_reduce (FSDPTrainRayActor.train)`."""
        labels = tuple(dict.fromkeys(sight.label for sight in self.sights))
        named = ", ".join(labels[:_MOST_LABELS]) + (", …" if len(labels) > _MOST_LABELS else "")
        stuck = any(sight.state == "D" for sight in self.sights)
        what = f"in {self.sights[0].doing}" if self.at else "not readable"
        return f"{len(self.sights)} {what}{', deaf to signals' if stuck else ''} ({named})"


def threads_of(answer: str) -> tuple[Thread, ...]:
    """The threads in what `py-spy dump --json` prints; none when it is something else."""
    try:
        told = json.loads(answer)
    except ValueError:
        return ()
    threads = told if isinstance(told, list) else ()
    return tuple(_thread(each) for each in threads if isinstance(each, dict))


def telling(threads: Sequence[Thread]) -> Thread | None:
    """The thread that tells most: the main one unless that has nothing to do and another has."""
    with_frames = [thread for thread in threads if thread.frames]
    by_weight = sorted(
        with_frames, key=lambda thread: (thread.frames[0].is_idle, thread.name != _MAIN)
    )
    return by_weight[0] if by_weight else None


def grouped(sights: Iterable[Sight]) -> tuple[Group, ...]:
    """Processes by what they are at, the largest group first."""
    groups: dict[tuple[str, ...], list[Sight]] = {}
    for sight in sights:
        groups.setdefault(sight.at, []).append(sight)
    made = (Group(at=at, sights=tuple(members)) for at, members in groups.items())
    return tuple(sorted(made, key=lambda group: (not group.at, -len(group.sights))))


def page(groups: Sequence[Group]) -> str:
    """The groups with their stacks, as text."""
    return "\n".join(line for group in groups for line in _group_lines(group))


def threads_text(threads: Sequence[Thread]) -> str:
    """All threads of one process, as text."""
    return "\n".join(
        line for thread in threads for line in (f"thread {thread.name}", *_indented(thread.frames))
    )


def _group_lines(group: Group) -> Iterator[str]:
    yield group.line
    for sight in group.sights:
        kernel = f"  state {sight.state}" + (f" in {sight.waits_in}" if sight.waits_in else "")
        yield f"  process {sight.pid} {sight.label}{kernel}" + (
            f"  ({sight.fault})" if sight.fault else ""
        )
    yield from _indented(group.at)
    yield ""


def _indented(calls: Iterable[object]) -> Iterator[str]:
    return (f"    {call}" for call in calls)


def _thread(told: dict[str, Any]) -> Thread:
    frames = told.get("frames")
    return Thread(
        name=str(told.get("thread_name") or told.get("os_thread_id") or ""),
        frames=tuple(
            _frame(each)
            for each in (frames if isinstance(frames, list) else ())
            if isinstance(each, dict)
        ),
    )


def _frame(told: dict[str, Any]) -> Frame:
    line = told.get("line")
    return Frame(
        function=str(told.get("name") or "?"),
        file=str(told.get("short_filename") or told.get("filename") or "?"),
        line=line if isinstance(line, int) else 0,
    )
