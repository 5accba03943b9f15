"""What a converter prints, read line by line. Total: it may be cut, glued or hostile.

The FSDP converter ends with 0 though weights are missing, and neither has a line that says it is
done: what it printed counts as much as its exit code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from tui.miles.clues import TRACEBACK, is_exception
from tui.model.text import harmless

_LINE_LIMIT = 1 << 20
_TEXT_LIMIT = 300
_NAME_LIMIT = 400
_NAMES_KEPT = 20


class Stage(StrEnum):
    """What it is at, in the order in which it is."""

    STARTING = "starting"
    READING = "reading the checkpoint"
    BUILDING = "building the model"
    WRITING = "writing the weights"
    COPYING = "copying configuration and tokenizer"


class Failure(StrEnum):
    """Why it gave up."""

    OUTPUT_EXISTS = "the output folder is there already"
    NOT_FOUND = "a file or folder is missing"
    NO_WEIGHTS = "no weights were found in the checkpoint"
    UNTRAINED = "weights of the model are not in the checkpoint"
    IMPORT = "its libraries are not in reach"
    ARGUMENTS = "it does not know an argument"
    MEMORY = "no memory is left"
    DISK = "no disk space is left"
    OTHER = "an error"


_FAILURES: tuple[tuple[Failure, re.Pattern[str]], ...] = (
    (Failure.OUTPUT_EXISTS, re.compile(r"Output directory .{0,4096} already exists")),
    (Failure.NO_WEIGHTS, re.compile(r"No model weights found in checkpoint")),
    (Failure.UNTRAINED, re.compile(r"parameters have no weight in the checkpoint")),
    (Failure.MEMORY, re.compile(r"^MemoryError|[Nn]ot enough memory|Cannot allocate memory")),
    (Failure.DISK, re.compile(r"No space left on device|Disk quota exceeded")),
    (Failure.NOT_FOUND, re.compile(r"^FileNotFoundError|can't open file|^NotADirectoryError")),
    (Failure.IMPORT, re.compile(r"^ModuleNotFoundError|^ImportError")),
    (Failure.ARGUMENTS, re.compile(r"\.py: error: ")),
)
_NO_TRACEBACK = re.compile(r"\.py: error: |: can't open file '")
"""What argparse says, and Python of a script that is not there."""

_READING = re.compile(r"loading (?:FSDP )?model from ")
_FOUND = re.compile(r"find \S{1,4096} in torch_dist ckpt")
_READ = re.compile(r"model loaded in \d{1,9}\.\d{1,3} sec\.")
_MATCHED = re.compile(
    r"Using prefix '(?P<prefix>[^']{0,400})' for key mapping\. "
    r"Matched (?P<some>\d{1,12})/(?P<all>\d{1,12}) parameter keys\."
)
_KEYS = re.compile(r"(?P<what>Missing|Unexpected) keys: (?P<list>\[.*)")
_NAME = re.compile(r"'((?:[^'\\]|\\.){0,4096})'|\"((?:[^\"\\]|\\.){0,4096})\"")
_WRITING = re.compile(r"start saving to |\.index\.json saved\.")
_SHARD = re.compile(r"model-\d{5,9}-of-(\d{5,9})\.safetensors saved in ")
_WRITTEN = re.compile(r"Model weights saved to ")
_COPIED = re.compile(r"copy from \S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Names that were printed as a list."""

    count: int
    first: tuple[str, ...]

    def __str__(self) -> str:
        more = self.count - len(self.first[:3])
        return ", ".join(self.first[:3]) + (f" and {more:,} more" if more > 0 else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An exception's last line, or what stood in its place."""

    failure: Failure
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """What is known by its output so far."""

    stage: Stage = Stage.STARTING
    found: int = 0
    """Tensors of the checkpoint that it named; it names all before it reads the first."""
    prefix: str = ""
    """What it cut from the keys."""
    matched: tuple[int, int] | None = None
    """Keys with a place in the model, and all keys."""
    missing: Keys | None = None
    """Of the model, without a weight; None: it has not come to say so."""
    unexpected: Keys | None = None
    shards: int = 0
    """That the Megatron converter is going to write."""
    shards_written: int = 0
    is_written: bool = False
    """All weights are."""
    copied: int = 0
    """Files of the origin."""
    trouble: Trouble | None = None
    """The last exception it printed; it may have gone on after it."""
    in_traceback: bool = False

    def after(self, line: str) -> Printed:
        """What is known with one line more."""
        text = line[:_LINE_LIMIT].rstrip("\r\n").rpartition("\r")[2]
        return _after_trouble(self, text) or _after_word(self, text) or self


def printed_by(lines: Iterable[str]) -> Printed:
    """What is known of a whole output."""
    printed = Printed()
    for line in lines:
        printed = printed.after(line)
    return printed


def progress_line(printed: Printed, tensors: int) -> str:
    """Where it is, for a person; `tensors` is how many it will find."""
    match printed.stage:
        case Stage.READING:
            found = f"{min(printed.found, tensors):,} of {tensors:,} tensors found"
            return f"{printed.stage.value}: {found}"
        case Stage.WRITING if printed.shards:
            return f"{printed.stage.value}: {printed.shards_written:,} of {printed.shards:,} shards"
        case Stage.COPYING:
            return f"{printed.stage.value}: {printed.copied:,} files"
        case _:
            return printed.stage.value


def _after_trouble(printed: Printed, text: str) -> Printed | None:
    if text.startswith(TRACEBACK):
        return replace(printed, in_traceback=True)
    if (printed.in_traceback and is_exception(text)) or _NO_TRACEBACK.search(text[:8192]):
        shown = text[:8192]
        kinds = (kind for kind, pattern in _FAILURES if pattern.search(shown))
        trouble = Trouble(
            failure=next(kinds, Failure.OTHER), text=harmless(shown)[:_TEXT_LIMIT].strip()
        )
        return replace(printed, trouble=trouble, in_traceback=False)
    return None


def _after_word(printed: Printed, text: str) -> Printed | None:
    if _FOUND.search(text):
        return replace(printed, stage=Stage.READING, found=printed.found + 1)
    if _READING.search(text):
        return replace(printed, stage=Stage.READING)
    if _READ.search(text):
        return replace(printed, stage=Stage.BUILDING)
    if matched := _MATCHED.search(text):
        counts = (int(matched["some"]), int(matched["all"]))
        return replace(printed, prefix=harmless(matched["prefix"]), matched=counts)
    if keys := _KEYS.search(text):
        names = _names(keys["list"])
        if keys["what"] == "Missing":
            return replace(printed, missing=names)
        return replace(printed, unexpected=names, stage=Stage.WRITING)
    return _after_written(printed, text)


def _after_written(printed: Printed, text: str) -> Printed | None:
    if shard := _SHARD.search(text):
        written, shards = printed.shards_written + 1, int(shard[1])
        return replace(
            printed,
            stage=Stage.WRITING,
            shards=shards,
            shards_written=written,
            is_written=written >= shards,
        )
    if _WRITING.search(text):
        return replace(printed, stage=Stage.WRITING)
    if _WRITTEN.search(text):
        return replace(printed, stage=Stage.COPYING, is_written=True)
    if _COPIED.search(text):
        return replace(printed, stage=Stage.COPYING, copied=printed.copied + 1)
    return None


def _names(text: str) -> Keys:
    """The names in a printed list; whatever else stands in it counts as one."""
    inside = text.removeprefix("[").removesuffix("]").strip()
    count = 0
    first: list[str] = []
    for found in _NAME.finditer(inside):
        count += 1
        if len(first) < _NAMES_KEPT:
            first.append(harmless(found[1] or found[2] or "")[:_NAME_LIMIT])
    if inside and not count:
        return Keys(count=1, first=(harmless(inside[:_NAME_LIMIT]),))
    return Keys(count=count, first=tuple(first))
