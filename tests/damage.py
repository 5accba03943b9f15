"""A damage campaign: harm one file of a checkpoint at a time, and see who notices.

Each damage is done to a copy and then undone, its time put back, so that only bytes can tell. Three
look at it: real torch (does it load, and the same?), a verify that never saw the files before, and
one whose ledger knows them. Damage that torch does not notice and that changes nothing is harmless.

Usage: python tests/damage.py [--flips N] [--cuts N] [--seed N] FOLDER OLDER [FOLDER OLDER …]
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import logging
import os
import random
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tui.checkpoints.verify import verify

ZEROED_BYTES = 4096
READER_LIMIT_BYTES = 12 << 30
READER_DEADLINE_S = 120.0
OPTIONAL = ("generation_config.json", "tokenizer_config.json")
"""Files that a folder may well do without."""


@dataclass(frozen=True)
class Damage:
    """One thing done to one file: its new bytes, or None where it is deleted."""

    kind: str
    file: str
    what: str
    harm: Callable[[bytes], bytes | None]


@dataclass
class Score:
    """What came of all damages of one kind."""

    tried: int = 0
    harmful: int = 0
    """torch fails, or reads something else."""
    unnoticed: int = 0
    """Of these: torch loads it without a word."""
    shallow: int = 0
    first: int = 0
    again: int = 0
    missed_first: list[str] = field(default_factory=list)
    """Harmful, and not found by a verify that never saw the files before."""
    missed_again: list[str] = field(default_factory=list)


def damages(
    folder: Path, older: Path, *, flips: int, cuts: int, draw: random.Random
) -> Iterator[Damage]:
    """Every kind for each file below `folder`; `older` is another checkpoint of the same run."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, raw = str(path.relative_to(folder)), path.read_bytes()
        if name not in OPTIONAL:
            yield Damage("delete", name, "deleted", lambda _: None)
        yield Damage("empty", name, "emptied", lambda _: b"")
        for length in sorted({1, len(raw) - 1, *(draw.randrange(len(raw)) for _ in range(cuts))}):
            yield Damage("truncate", name, f"cut to {length}", partial(cut, length=length))
        for _ in range(cuts):
            at = draw.randrange(len(raw))
            yield Damage("zero a block", name, f"zeros at {at}", partial(zeroed, at=at))
        other = older / name
        if other.is_file() and other.read_bytes() != raw:
            swapped = partial(swap, older=other.read_bytes())
            yield Damage("swap with older", name, "swapped", swapped)
        for _ in range(flips):
            at, bit = place(raw, draw), draw.randrange(8)
            yield Damage("flip a bit", name, f"bit {bit} of {at}", partial(flipped, at=at, bit=bit))


def format_of(path: Path) -> str:
    """Files of torch have checksums; the others have none, so a first verify has less to go by."""
    return path.suffix[1:] if path.suffix in (".json", ".safetensors") else "torch"


def place(raw: bytes, draw: random.Random) -> int:
    """Half the places anywhere, half in headers, which are few and matter most."""
    marks = [at for at in (raw.rfind(b"PK", 0, draw.randrange(len(raw)) + 1),) if at >= 0]
    if marks and draw.random() < 0.5:
        return min(len(raw) - 1, marks[0] + draw.randrange(120))
    return draw.randrange(len(raw))


def cut(raw: bytes, length: int) -> bytes:
    return raw[:length]


def swap(_: bytes, older: bytes) -> bytes:
    return older


def zeroed(raw: bytes, at: int) -> bytes:
    at -= at % ZEROED_BYTES
    return raw[:at] + bytes(min(ZEROED_BYTES, len(raw) - at)) + raw[at + ZEROED_BYTES :]


def flipped(raw: bytes, at: int, bit: int) -> bytes:
    return raw[:at] + bytes([raw[at] ^ 1 << bit]) + raw[at + 1 :]


@contextmanager
def harmed(path: Path, damage: Damage) -> Iterator[bool]:
    """The file damaged in place, its time as before. False where the damage changes no byte."""
    raw, status = path.read_bytes(), path.stat()
    new = damage.harm(raw)
    aside = path.with_name(f"{path.name}.aside")
    if new is None:
        path.rename(aside)
    else:
        path.write_bytes(new)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    try:
        yield new != raw
    finally:
        if new is None:
            aside.rename(path)
        else:
            path.write_bytes(raw)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def read_by_torch(path: Path, skeletons: dict[Path, Any]) -> str:
    """A digest of everything that torch, or Miles, reads out of the file and what belongs to it."""
    import torch

    if path.suffix == ".distcp" or path.name == ".metadata":
        return read_by_dcp(path.parent, skeletons)
    if path.suffix in (".pt", ".bin"):
        return digest_of(torch.load(path, weights_only=False))
    if path.suffix == ".safetensors":
        return digest_of(importlib.import_module("safetensors.torch").load_file(path))
    if path.suffix == ".json":
        return digest_of(json.loads(path.read_bytes()))
    return digest_of(path.read_bytes())


def read_by_dcp(folder: Path, skeletons: dict[Path, Any]) -> str:
    """As a resume reads it, into what the model already has, and as the converter does."""
    import torch
    from torch.distributed import checkpoint as dcp
    from torch.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata
    from torch.distributed.checkpoint.state_dict_loader import _load_state_dict

    if folder not in skeletons:
        described = dcp.FileSystemReader(folder).read_metadata().state_dict_metadata
        skeletons[folder] = {
            key: (entry.size, entry.properties.dtype)
            if isinstance(entry, TensorStorageMetadata)
            else None
            for key, entry in described.items()
        }
    state: dict[str, Any] = {
        key: torch.zeros(known[0], dtype=known[1]) if known else None
        for key, known in skeletons[folder].items()
    }
    dcp.load(state, checkpoint_id=folder, no_dist=True)
    converted: dict[str, Any] = {}
    _load_state_dict(
        converted,
        storage_reader=dcp.FileSystemReader(folder),
        planner=_EmptyStateDictLoadPlanner(),
        no_dist=True,
    )
    return digest_of(state) + digest_of(converted)


def digest_of(value: Any) -> str:
    import torch

    digest = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, torch.Tensor):
            digest.update(f"{value.dtype}{tuple(value.shape)}".encode())
            digest.update(bytes(value.detach().contiguous().reshape(-1).view(torch.uint8).numpy()))
        elif isinstance(value, dict):
            for key, item in value.items():
                digest.update(f"{key!r}:".encode())
                add(item)
        elif isinstance(value, list | tuple):
            digest.update(f"{type(value).__name__}{len(value)}".encode())
            for item in value:
                add(item)
        else:
            digest.update(repr(value).encode())

    add(value)
    return digest.hexdigest()


def campaign(
    folder: Path,
    older: Path,
    state: Path,
    scores: dict[str, Score],
    reader: Reader,
    *,
    flips: int,
    cuts: int,
    draw: random.Random,
) -> None:
    """Damage a copy of `folder` in all ways and count who found what. `state` is for ledgers."""
    known, fresh = state / "known", state / "fresh"

    def is_found(*, shallow: bool = False, ledger: Path = known) -> bool:
        os.environ["XDG_STATE_HOME"] = str(ledger)
        if ledger is fresh:
            shutil.rmtree(fresh, ignore_errors=True)
        return not verify(folder, shallow=shallow).is_good

    assert not is_found(), verify(folder)
    good = shutil.copytree(known, state / "good")
    for damage in damages(folder, older, flips=flips, cuts=cuts, draw=draw):
        path = folder / damage.file
        score = scores.setdefault(f"{damage.kind}, {format_of(path)}", Score())
        whole = reader.digest_of_good(path)
        with harmed(path, damage) as is_changed:
            if not is_changed:
                continue
            score.tried += 1
            outcome = reader.read(path)
            is_harmful = outcome != whole
            score.harmful += is_harmful
            score.unnoticed += is_harmful and outcome is not None
            score.shallow += is_found(shallow=True)
            first, again = is_found(ledger=fresh), is_found()
            score.first += first
            score.again += again
            told = f"{damage.file}: {damage.what}"
            if is_harmful and not first:
                score.missed_first.append(told)
            if is_harmful and not again:
                score.missed_again.append(told)
        shutil.rmtree(known)
        shutil.copytree(good, known)
    assert not is_found(), "false alarm on the tree put back"


def attempt(read: Callable[[], str]) -> str | None:
    """What was read, or None where that failed; DCP's own exception is no `Exception`."""
    try:
        return read()
    except Exception:
        return None
    except BaseException as error:
        if type(error).__name__ != "CheckpointException":
            raise
        return None


def serve() -> None:
    """The reader's side: a path a line, and for each a digest or nothing."""
    resource.setrlimit(resource.RLIMIT_AS, (READER_LIMIT_BYTES, READER_LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable()
    warnings.simplefilter("ignore")
    skeletons: dict[Path, Any] = {}
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for line in sys.stdin:
        path = Path(json.loads(line))
        print(
            json.dumps(attempt(partial(read_by_torch, path, skeletons))), file=answers, flush=True
        )


class Reader:
    """Real torch in a process of its own: a damaged pickle can end one, or hang it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._known: dict[Path, str] = {}

    def digest_of_good(self, path: Path) -> str:
        """Read the whole file; so the reader learns what the state dict holds."""
        if self._process is None or path not in self._known:
            digest = self.read(path)
            assert digest is not None, path
            self._known[path] = digest
        return self._known[path]

    def read(self, path: Path) -> str | None:
        """A digest, or None where torch fails, dies or hangs."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, __file__, "--reader"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(str(path)), file=self._process.stdin, flush=True)
        ready, _, _ = select.select([self._process.stdout], [], [], READER_DEADLINE_S)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self.close()
            return None
        answer: str | None = json.loads(line)
        return answer

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._process = None
        self._known = {}


HEADS = (
    "damage",
    "tried",
    "harmful",
    "torch loads it",
    "shallow",
    "first",
    "missed",
    "again",
    "missed",
)


def table(scores: dict[str, Score]) -> str:
    """One row a kind: found by a shallow verify, by a first deep one, and by one with a ledger."""
    rows: list[tuple[str, ...]] = [HEADS]
    total = Counter[int]()
    for kind, score in sorted(scores.items(), key=lambda row: row[0].partition(", ")[::-2]):
        numbers = (
            *(score.tried, score.harmful, score.unnoticed, score.shallow),
            *(score.first, len(score.missed_first), score.again, len(score.missed_again)),
        )
        total.update(dict(enumerate(numbers)))
        rows.append((kind, *map(str, numbers)))
    rows.append(("all", *(str(total[place]) for place in range(len(HEADS) - 1))))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main() -> None:
    if sys.argv[1:] == ["--reader"]:
        serve()
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--flips", type=int, default=200, help="a file")
    parser.add_argument("--cuts", type=int, default=20, help="a file, and as many zeroed blocks")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("folders", nargs="+", type=Path, help="a checkpoint and an older one, …")
    options = parser.parse_args()
    draw, scores, reader = random.Random(options.seed), dict[str, Score](), Reader()
    pairs = zip(options.folders[::2], options.folders[1::2], strict=True)
    for folder, older in pairs:
        with tempfile.TemporaryDirectory() as space:
            copy = Path(space) / "tree" / folder.name
            shutil.copytree(folder, copy)
            state = Path(space) / "state"
            state.mkdir()
            campaign(
                copy,
                older,
                state,
                scores,
                reader,
                flips=options.flips,
                cuts=options.cuts,
                draw=draw,
            )
    reader.close()
    print(table(scores))
    for score in scores.values():
        for told in (*score.missed_first, *score.missed_again):
            print("missed:", told)
    sys.exit(any(score.missed_again for score in scores.values()))


if __name__ == "__main__":
    main()
