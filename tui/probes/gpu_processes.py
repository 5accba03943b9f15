"""The processes on a device: NVML's two lists made one, each process with its title."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tui.model.gpu import GpuProcess
from tui.model.reading import Absence, Unknown, known

TITLE_LENGTH = 120


def merged(listed: Iterable[tuple[int, int | None]], at: float) -> tuple[GpuProcess, ...]:
    """One entry a pid, the largest first; `listed` is pid and bytes, None where it is not told.

    A process may be listed as compute and as graphics, each time with all that it holds.
    """
    held: dict[int, list[int]] = {}
    for pid, size in listed:
        held.setdefault(pid, []).extend(() if size is None else (size,))
    by_size = sorted(held.items(), key=lambda one: (-max(one[1], default=-1), one[0]))
    return tuple(_process(pid, sizes, at) for pid, sizes in by_size)


def _process(pid: int, sizes: list[int], at: float) -> GpuProcess:
    untold = Unknown(why=Absence.NOT_SUPPORTED, reason="the driver does not tell", at=at)
    return GpuProcess(
        pid=pid,
        name=process_title(pid),
        memory_bytes=known(max(sizes), at) if sizes else untold,
    )


def process_title(pid: int, proc: Path = Path("/proc")) -> str:
    """What to call a process. No arguments beyond a script's name: those may hold secrets."""
    try:
        argv = (proc / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
        words = [word for word in argv if word] or [(proc / str(pid) / "comm").read_text().strip()]
    except OSError:
        return ""
    is_path = len(words) > 1 or words[0].startswith("/")
    title = Path(words[0]).name if is_path else words[0]
    if title.startswith("python"):
        title = " ".join((title, *_script(words)))
    return title[:TITLE_LENGTH]


def _script(words: list[str]) -> list[str]:
    if words[1:2] == ["-m"]:
        return words[2:3]
    return [word for word in words[1:2] if not word.startswith("-")]
