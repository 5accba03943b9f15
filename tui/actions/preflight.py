"""What is checked before a run is stopped or started, each as a row of the confirm."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from tui.actions.leftovers import find_leftovers
from tui.actions.signals import tree_of
from tui.actions.situation import Situation
from tui.miles.cleanup import cleanup_of, strangers_hit
from tui.miles.secrets import masked_words
from tui.model.judge.words import counted, span
from tui.model.launch import Process
from tui.model.plan import Row
from tui.model.recipe import Recipe, RecipeKind
from tui.model.snapshot import Level
from tui.model.target import RunTarget
from tui.runs.bounds import limits_of

_DISK = (
    "disk-full-at-next-save",
    "disk-nearly-full",
    "disk-read-only",
    "disk-inodes",
    "disk-quota",
)
_LIMITS = {"NOFILE": "open files", "MEMLOCK": "bytes of locked memory", "NPROC": "processes"}
_MOST_SCRIPT_BYTES = 1 << 20
_MOST_NAMED = 3
_LAUNCHER_KILLS = "pkill -9 sglang; ray stop --force; pkill -9 ray; pkill -9 miles; pkill -9 redis"
"""What Miles' `execute_train` does before a start; its scripts do not say so themselves."""


def why(situation: Situation) -> Row:
    """Why one might do it: what the verdict says."""
    verdict = situation.snapshot.verdict
    reason = verdict.cause.line if verdict.cause is not None else verdict.reason
    level = Level.WARNING if verdict.degraded else Level.INFO
    return Row(label="Why", text=f"{verdict.state.value}: {reason}", level=level)


def will_stop(target: RunTarget, at: float) -> Row:
    """Everything that will be ended, and nothing else."""
    parts = []
    if target.container is not None:
        container = target.container
        up = span(at - container.started_at)
        parts.append(f"container {container.name} ({container.id[:12]}, up {up})")
    if target.job is not None:
        parts.append(f"Ray job {target.job.submission_id}")
    count = len(tree_of(target.processes)) if target.processes else 0
    if count:
        parts.append(counted(count, "process"))
    return Row(label="Will stop", text=f"{' with '.join(parts)}; nothing else")


def disk(situation: Situation) -> Iterator[Row]:
    """Whether the next saves have room."""
    alerts = [each for each in situation.snapshot.verdict.alerts if each.code in _DISK]
    for alert in alerts:
        yield Row(label="Checks", text=alert.line, level=alert.level)


def leftovers(situation: Situation) -> Iterator[Row]:
    """What earlier runs left behind, and would hold memory or lead a start astray."""
    found = find_leftovers(situation.at)
    own = {each.pid for each in situation.target.processes} if situation.target else set()
    orphans = [each for each in found.orphans if each.pid not in own]
    if orphans:
        named = ", ".join(f"{each.pid} {each.title}" for each in orphans[:_MOST_NAMED])
        text = f"left behind by an earlier run, owned by nobody: {named}"
        yield Row(label="Checks", text=text, level=Level.WARNING)
    if found.stale_ray is not None:
        stale = found.stale_ray
        text = f"{stale.path} names {stale.address}, where no Ray answers: `ray stop` clears it"
        yield Row(label="Checks", text=text, level=Level.WARNING)


def hit_by_start(situation: Situation, recipe: Recipe) -> Iterator[Row]:
    """Processes of others that the start command itself would end by name."""
    if recipe.kind is not RecipeKind.PROCESS or recipe.is_client:
        return
    own = {each.pid for each in tree_of(situation.target.processes)} if situation.target else set()
    strangers = strangers_hit(cleanup_of(_kills_in(recipe)), _processes(), own)
    if strangers:
        named = ", ".join(f"{each.pid} {each.title[:40]}" for each in strangers[:_MOST_NAMED])
        more = len(strangers) - _MOST_NAMED
        text = f"the start command ends others by name: {named}"
        text += f" and {more} more" if more > 0 else ""
        yield Row(label="Checks", text=text, level=Level.WARNING)


def limits(recipe: Recipe) -> Iterator[Row]:
    """What the start cannot have as much of as the run had. Of a container its engine decides."""
    if recipe.bounds is None or recipe.is_client or os.geteuid() == 0:
        return
    for name, words in _LIMITS.items():
        before, highest = recipe.bounds.soft(name), limits_of(0, name)[1]
        is_less = before is not None and highest >= 0 and (before < 0 or before > highest)
        if is_less:
            had = "no limit" if before == -1 else f"{before:,}"
            text = f"{words}: {highest:,} at most here, {had} for the run before"
            yield Row(label="Checks", text=text, level=Level.WARNING)


def command_rows(recipe: Recipe) -> Iterator[Row]:
    """The command as it will be run, secrets masked, and what is not known of it."""
    shown = recipe.argv or tuple(recipe.entrypoint.split())
    yield Row(label="Will start", text=shlex.join(masked_words(shown)))
    for gap in recipe.missing:
        yield Row(label="", text=f"not known: {gap}", level=Level.WARNING)


def _kills_in(recipe: Recipe) -> str:
    texts = [shlex.join(recipe.argv)]
    for word in recipe.argv:
        if word.endswith(".sh"):
            texts.append(_script(Path(recipe.cwd, word)))
        elif word.endswith(".py") and "scripts/run_" in word:
            texts.append(_LAUNCHER_KILLS)
    return "\n".join(texts)


def _script(file: Path) -> str:
    with suppress(OSError), file.open("rb") as script:
        return script.read(_MOST_SCRIPT_BYTES).decode("utf-8", "replace")
    return ""


def _processes() -> Iterable[Process]:
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline() or [process.name()]
            title = " ".join(masked_words(words))
            yield Process(pid=process.pid, started_at=process.create_time(), role="", title=title)
