"""The folder that outlives a run: its recipe, plans, journal, samples, locks.

A run that is resumed has a new pid, a new container, a new log. What stays is where it saves, so
that names its folder; a run that saves nothing is named by its log.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tui.config import state_home
from tui.model.codec import decoded, encoded
from tui.model.launch import Attachment

_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 40
_FILE = "run.json"
_VERSION = 1


def run_id(attachment: Attachment) -> str:
    """Such as `run-a-1f0c93ab`; the same for every attempt that saves to the same folder."""
    where = attachment.checkpoints or attachment.log or attachment.container or attachment.job
    told = where.value if where is not None else attachment.name
    path = _real(told) if told.startswith("/") else told
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    name = _NO_NAME.sub("-", Path(path).stem if told.startswith("/") else attachment.name)
    return f"{name.strip('-.')[:_LONGEST] or 'run'}-{digest}"


@lru_cache(maxsize=256)
def _real(path: str) -> str:
    """Asked of the disk once: it may hang later, and who asks must not hang with it."""
    return os.path.realpath(path)


def runs_folder() -> Path:
    """Where the folders of all runs are."""
    return state_home() / "runs"


def run_folder(attachment: Attachment) -> Path:
    """The run's folder. It need not be there yet; see `made`."""
    return runs_folder() / run_id(attachment)


def made(folder: Path) -> Path:
    """The folder, created where it was not, readable by its owner alone. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRun:
    """A run that was seen once, and may be gone."""

    id: str
    folder: Path
    attachment: Attachment
    """As it was seen last: its log, where it saves, what it was in."""
    seen_at: float
    """Epoch seconds of the last time that anything of this was new."""

    def answers_to(self, name: str) -> bool:
        """Whether a person can mean it by that."""
        return name in (self.id, self.attachment.name, self.id.rpartition("-")[0])


def keep(attachment: Attachment) -> None:
    """Remember where it is, for the time when nothing of it runs. Raises OSError."""
    text = json.dumps({"milepost_run": _VERSION, **encoded(attachment)})
    file = made(run_folder(attachment)) / _FILE
    with suppress(OSError):
        if file.read_text(encoding="utf-8") == text:
            return
    beside = file.with_name(f".{_FILE}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(file)


def kept_runs() -> tuple[KeptRun, ...]:
    """All runs that were ever seen, the newest first. What cannot be read is left out."""
    runs = []
    for file in runs_folder().glob(f"*/{_FILE}"):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            document = json.loads(file.read_text(encoding="utf-8"))
            if document.pop("milepost_run", None) != _VERSION:
                continue
            attachment = decoded(document, Attachment)
            written_at = file.stat().st_mtime
            run = KeptRun(
                id=file.parent.name,
                folder=file.parent,
                attachment=attachment,
                seen_at=written_at,
            )
            runs.append(run)
    return tuple(sorted(runs, key=lambda run: run.seen_at, reverse=True))
