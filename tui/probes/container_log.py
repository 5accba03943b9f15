"""A container's output copied to a file of ours, for a run whose output goes to no file.

The copy is what the log probe follows, and what is left when `--rm` takes the container along.
"""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tui.model.events import Event, LogUnreadable
from tui.model.reading import Absence, Unknown
from tui.model.snapshot import Snapshot
from tui.runs.docker import DockerEngine

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
END_BYTES = 1 << 14
"""By so much of its end a copy is found again in the container's output."""
_LF = ord("\n")


class ContainerLogProbe:
    """Copies one container's output for as long as it runs.

    The engine may restart, and drops the oldest output where its size is limited: so each new
    stream is taken up behind the bytes that end the copy. Of several milepost one copies.
    """

    name = "container log"
    cadence_s = 2.0
    deadline_s = 5.0

    def __init__(self, copy_of: Callable[[str], Path], engine: DockerEngine | None = None) -> None:
        """`copy_of` says where the output of a container, by its id, is copied to."""
        self._copy_of = copy_of
        self._engine = engine or DockerEngine()
        self._closing = threading.Event()
        self._container_id = ""
        self._copy = Path()
        self._fault = ""

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """Begin copying when the copy is what is watched; then say what is wrong, if anything."""
        container, log = seen.attachment.container, seen.attachment.log
        if container is None or log is None:
            return ()
        copy = self._copy_of(container.value)
        if log.value != str(copy):
            return ()
        if container.value != self._container_id:
            self._container_id, self._copy = container.value, copy
            threading.Thread(target=self._run, name="container-log", daemon=True).start()
        if not self._fault:
            return ()
        fault = Unknown(why=Absence.ERROR, reason=self._fault, at=now)
        return (LogUnreadable(at=now, path=str(self._copy), fault=fault),)

    def close(self) -> None:
        """Stop copying; a read that blocks ends with the process."""
        self._closing.set()

    def _run(self) -> None:
        pause_s, is_whole = FIRST_PAUSE_S, False
        while not self._closing.is_set():
            try:
                if not is_whole or self._engine.is_running(self._container_id, 0.0):
                    pause_s = FIRST_PAUSE_S if self._copy_new() else pause_s
                    is_whole = not self._engine.is_running(self._container_id, 0.0)
            except FileNotFoundError:
                return
            except BlockingIOError:
                is_whole = False  # another milepost copies
            except OSError as error:
                self._fault = f"the container's output: {error}"
            self._closing.wait(pause_s)
            pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)

    def _copy_new(self) -> bool:
        """Copy what the copy lacks until the stream ends; whether there was anything."""
        self._copy.parent.mkdir(parents=True, exist_ok=True)
        is_new = False
        with self._copy.open("ab") as out:
            fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
            skipped = _Skipped(*self._known(out.tell(), _end_of(self._copy)))
            for chunk in self._engine.follow_logs(self._container_id, 0.0):
                self._fault = ""
                if new := skipped.rest_of(chunk):
                    is_new = True
                    out.write(new)
                    out.flush()
                if self._closing.is_set():
                    break
        return is_new

    def _known(self, copied: int, end: bytes) -> tuple[int, bytes]:
        """How much of the container's output, as it is now, the copy holds, and how that ends."""
        # A last line that an ended container left open was ended in the copy.
        for size, text in ((copied, end), (copied - 1, end[:-1])):
            output = self._engine.follow_logs(self._container_id, 0.0, follow=False)
            if text and (place := place_of_end(output, text, size)):
                return place, text
        return 0, b""


class _Skipped:
    """The beginning of a stream, which the copy holds already."""

    def __init__(self, size: int, end: bytes) -> None:
        self._left, self._end = size, end
        self._passed = b""

    def rest_of(self, chunk: bytes) -> bytes:
        """What is behind it; ConnectionError where it is not what was to be skipped."""
        if not self._left:
            return chunk
        known, rest = chunk[: self._left], chunk[self._left :]
        self._left -= len(known)
        self._passed = (self._passed + known)[-END_BYTES:]
        if not self._left and not self._end.endswith(self._passed):
            raise ConnectionError("it was cut while it was read")
        return rest


def _end_of(path: Path) -> bytes:
    with path.open("rb") as copy:
        copy.seek(max(0, path.stat().st_size - END_BYTES))
        return copy.read()


def place_of_end(chunks: Iterable[bytes], end: bytes, copied: int) -> int:
    """How much of a stream a copy of so many bytes holds that ends like this.

    All of what it holds where the stream is the same; less where the stream lost its oldest part,
    at worst all but a few lines; 0 where nothing of it is there.
    """
    window, head, reached, found = b"", b"", 0, 0
    for chunk in chunks:
        head += chunk[: len(end) - len(head)]
        window += chunk
        reached += len(chunk)
        start = reached - len(window)
        place = copied - start
        if len(end) <= place <= len(window) and window[place - len(end) : place] == end:
            return copied
        if (last := window.rfind(end)) >= 0:
            found = start + last + len(end)
        window = window[max(0, len(window) - len(end) + 1) :]
    return found or _overlap(end, head)


def _overlap(end: bytes, head: bytes) -> int:
    """Bytes of whole lines that end the one and begin the other."""
    sizes = (size for size in range(min(len(end), len(head)), 0, -1) if head[size - 1] == _LF)
    return next((size for size in sizes if end.endswith(head[:size])), 0)
