"""What has to differ in any second start of the same command. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from tui.model.recipe import Recipe, RecipeKind
from tui.runs.docker_client import without_terminal

_ID_OPTIONS = ("--submission-id", "--job-id")
_STAMP = re.compile(r"-resume-\d{8}-\d{6}$")


def startable(recipe: Recipe, stamp: str) -> tuple[Recipe, tuple[str, ...]]:
    """The recipe able to start again, and what was changed for that, in words.

    Args:
        recipe: how it was started before.
        stamp: local time of the new start, such as `20261129-181503`.
    """
    if recipe.kind is not RecipeKind.PROCESS:
        return recipe, ()
    changes: tuple[str, ...] = ()
    if recipe.is_client:
        argv = without_terminal(recipe.argv)
        if argv != recipe.argv:
            changes = ("docker's -i is left out: there is no terminal to type at",)
    else:
        argv, new = _with_new_id(recipe.argv, stamp)
        changes = tuple(f"submission id {each}: Ray takes no id twice" for each in new)
    return (replace(recipe, argv=argv), changes) if changes else (recipe, ())


def new_submission_id(before: str, stamp: str) -> str:
    """For another start of that job."""
    return f"{original_id(before)}-resume-{stamp}"


def original_id(submission_id: str) -> str:
    """What the first start of that job was called."""
    return _STAMP.sub("", submission_id)


def _with_new_id(argv: tuple[str, ...], stamp: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of `ray job submit` with another id where one was typed, and the new ids."""
    end = argv.index("--") if "--" in argv else 0
    if ("job", "submit") not in pairwise(argv[:end]):
        return argv, ()
    words = list(argv)
    changed: list[str] = []
    for index in range(end):
        name, equals, value = words[index].partition("=")
        if name not in _ID_OPTIONS:
            continue
        if equals:
            changed.append(new_submission_id(value, stamp))
            words[index] = f"{name}={changed[-1]}"
        elif index + 1 < end:
            changed.append(new_submission_id(words[index + 1], stamp))
            words[index + 1] = changed[-1]
    return tuple(words), tuple(changed)
