"""What a run is at, written into one folder before it is killed. Bounded, and never in the way.

Each source works on a thread that nobody waits for beyond the deadline, and writes its own file: a
source that hangs, or a disk that does, costs only what it would have told.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tui.actions import evidence
from tui.actions.evidence import NotReadableError
from tui.actions.py_spy import kernel_text, look_at
from tui.actions.stacks import Group, Sight, grouped, page, threads_text
from tui.miles.titles import Role
from tui.model.judge.words import counted
from tui.model.launch import Process
from tui.model.reading import Known
from tui.model.snapshot import Snapshot

_LOOKED_AT = frozenset(
    {Role.DRIVER, Role.TRAINER, Role.ROLLOUT_MANAGER, Role.ENGINE, Role.SCHEDULER}
)
_MOST_PROCESSES = 24
_MOST_FOLDERS = 100
_HOME_S = 3.0
_WRITE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AutopsyReport:
    """What was found, and where it lies."""

    folder: str
    """Empty: nothing could be written."""
    line: str
    """`4 processes: 3 in all_reduce (FSDPTrainRayActor.train), 1 in select (SGLangEngine)`."""
    groups: tuple[Group, ...] = ()
    absences: tuple[str, ...] = ()
    """What could not be read, each with its reason."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Finding:
    source: str
    text: str = ""
    fault: str = ""
    sight: Sight | None = None


def autopsy(snapshot: Snapshot, folder: Path, deadline_s: float = 20.0) -> AutopsyReport:
    """Write down what the processes are at, and all around them that may tell why.

    Args:
        snapshot: the run as last seen.
        folder: takes it where the log's own folder does not.
        deadline_s: it returns within this time, whatever hangs.
    """
    begun = time.monotonic()
    until = begun + deadline_s
    home = _within(lambda: _made(snapshot, folder), min(until, begun + _HOME_S))
    sources = dict(_sources(snapshot))
    findings = _findings(sources, home, until - _WRITE_S)
    told = {finding.source for finding in findings}
    late = tuple(f"{name}: no answer in time" for name in sources if name not in told)
    groups = grouped(each.sight for each in findings if each.sight is not None)
    absences = (*(f"{each.source}: {each.fault}" for each in findings if each.fault), *late)
    if home is None:
        absences = ("no folder could be made", *absences)
    line = _summary(groups, findings, late)
    if home is not None:
        text = "\n".join((line, "", page(groups), *absences))
        _within(lambda: _write(home / "summary.txt", text), until)
    return AutopsyReport(
        folder=str(home or ""),
        line=line,
        groups=groups,
        absences=absences,
        seconds=time.monotonic() - begun,
    )


def _sources(seen: Snapshot) -> Iterator[tuple[str, Callable[[], _Finding]]]:
    processes = seen.processes.value.processes if isinstance(seen.processes, Known) else ()
    container = seen.attachment.container
    container_id = container.value if container is not None else ""
    for process in [each for each in processes if each.role in _LOOKED_AT][:_MOST_PROCESSES]:
        name = f"process {process.pid} {process.role}"
        yield name, _looking(name, process, container_id)
    yield "engines", lambda: _Finding("engines", evidence.engines_text(seen))
    yield "gpu", lambda: _Finding("gpu", evidence.gpu_text(seen))
    yield "memory", lambda: _Finding("memory", evidence.memory_text())
    yield "log", lambda: _Finding("log", evidence.log_text(seen))
    yield "kernel", lambda: _Finding("kernel", evidence.kernel_log())


def _looking(name: str, process: Process, container_id: str) -> Callable[[], _Finding]:
    def look() -> _Finding:
        sight = look_at(process, container_id)
        text = "\n".join((process.title, threads_text(sight.threads), kernel_text(process.pid)))
        return _Finding(name, text, sight.fault, sight)

    return look


def _findings(
    sources: Mapping[str, Callable[[], _Finding]], home: Path | None, until: float
) -> tuple[_Finding, ...]:
    """What the sources said until then, in their order."""
    found: dict[str, _Finding] = {}
    ended: queue.SimpleQueue[None] = queue.SimpleQueue()

    def work(name: str, take: Callable[[], _Finding]) -> None:
        found[name] = finding = _taken(name, take)
        if home is not None and finding.text:
            with suppress(OSError):  # what it says is kept in memory
                _write(home / f"{name.replace(' ', '-')}.txt", finding.text)
        ended.put(None)

    for name, take in sources.items():
        threading.Thread(target=work, args=(name, take), name=name, daemon=True).start()
    with suppress(queue.Empty):
        for _ in sources:
            ended.get(timeout=max(0.0, until - time.monotonic()))
    return tuple(found[name] for name in sources if name in found)


def _taken(name: str, take: Callable[[], _Finding]) -> _Finding:
    try:
        return take()
    except NotReadableError as fault:
        return _Finding(name, fault=str(fault))
    except Exception as defect:  # noqa: BLE001 - never in the way of what comes after
        return _Finding(name, fault=repr(defect))


def _summary(
    groups: tuple[Group, ...], findings: tuple[_Finding, ...], late: tuple[str, ...]
) -> str:
    number = sum(len(group.sights) for group in groups)
    stacks = ", ".join(group.line for group in groups)
    parts = [f"{counted(number, 'process')}: {stacks}" if number else "no process was looked at"]
    kernel = next((each.text for each in findings if each.source == "kernel"), "")
    if telling := evidence.telling_lines(kernel):
        parts.append(f"{counted(telling, 'kernel line')} of the driver, memory or a hang")
    if late:
        parts.append(f"{counted(len(late), 'source')} did not answer")
    return "; ".join(parts)


def _made(snapshot: Snapshot, folder: Path) -> Path:
    """A new folder beside the log, else in the other one. Raises OSError."""
    log = Path(snapshot.log.path) if snapshot.log.path else None
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name = f"{log.stem if log is not None else 'run'}-autopsy-{stamp}"
    if log is not None:
        try:
            return _new(log.parent, name)
        except OSError:
            pass  # read-only, not ours, or not of this machine
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _new(folder, name)


def _new(parent: Path, name: str) -> Path:
    for number in range(1, _MOST_FOLDERS):
        made = parent / (name if number == 1 else f"{name}-{number}")
        try:
            made.mkdir()
        except FileExistsError:
            continue
        return made
    raise FileExistsError(str(parent / name))


def _write(file: Path, text: str) -> None:
    file.write_text(evidence.masked(text), encoding="utf-8", errors="replace")


def _within(work: Callable[[], Path | None], until: float) -> Path | None:
    """What it gives in time; None when it fails or is late."""
    answers: queue.SimpleQueue[Path | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put(work())
        except OSError:
            answers.put(None)

    threading.Thread(target=run, name="autopsy folder", daemon=True).start()
    try:
        return answers.get(timeout=max(0.0, until - time.monotonic()))
    except queue.Empty:
        return None
