"""Which part of a run a process is, by its command line or the title it gave itself.

Ray names its workers `ray::Class.method` while a call runs and `ray::Class` between calls; SGLang
names its schedulers `sglang::scheduler_TP0`. Both are in the command line; `comm` has them cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from tui.miles.secrets import masked_words

_LONGEST_TITLE = 200
_MOST_WORDS = 64


class Role(StrEnum):
    """What a process does in a run."""

    DRIVER = "driver"
    LAUNCHER = "launcher"
    TRAINER = "trainer"
    ROLLOUT_MANAGER = "rollout manager"
    ENGINE = "engine"
    SCHEDULER = "scheduler"
    DETOKENIZER = "detokenizer"
    ROUTER = "router"
    RAY = "ray"


DRIVER_SCRIPT = re.compile(r"(?:.*/)?train(?:_async)?\.py")
DEMO_MODULE = "tui.demo"

_TITLES = (
    (re.compile(r"ray::\w*TrainRayActor\b"), Role.TRAINER),
    (re.compile(r"ray::RolloutManager\b"), Role.ROLLOUT_MANAGER),
    (re.compile(r"ray::SGLangEngine\b"), Role.ENGINE),
    (re.compile(r"ray::"), Role.RAY),
    (re.compile(r"sglang::scheduler"), Role.SCHEDULER),
    (re.compile(r"sglang::detokenizer"), Role.DETOKENIZER),
    (re.compile(r"sglang::router|miles-router\b"), Role.ROUTER),
    (re.compile(r"(?:\S*/)?(?:raylet|gcs_server)(?: |$)"), Role.RAY),
)
_SCRIPTS = (
    (DRIVER_SCRIPT, Role.DRIVER),
    (re.compile(r"(?:.*/)?scripts/run[_-][^/]*\.py"), Role.LAUNCHER),
    (re.compile(r".*/ray/.*/?(?:dashboard|agent|main|log_monitor|monitor)\.py"), Role.RAY),
)
_DEMO_MODULES = {
    DEMO_MODULE: Role.DRIVER,
    f"{DEMO_MODULE}.engine": Role.ENGINE,
    f"{DEMO_MODULE}.router": Role.ROUTER,
}
_PYTHON = re.compile(r"(?:.*/)?(?:python|pypy)[\d.]*t?")
_TAKES_VALUE = frozenset(("-W", "-X", "--check-hash-based-pycs"))


def role_of(argv: Sequence[str]) -> Role | None:
    """The role that a command line shows by itself, None for a process of something else."""
    if not argv:
        return None
    for title, role in _TITLES:
        if title.match(argv[0]):
            return role
    kind, name, rest = _python_program(argv[:_MOST_WORDS])
    if kind == "-m":
        return _DEMO_MODULES.get(name)
    if kind != "script":
        return None
    if re.fullmatch(r"(?:.*/)?ray", name):
        return Role.LAUNCHER if tuple(rest[:2]) == ("job", "submit") else None
    return next((role for script, role in _SCRIPTS if script.fullmatch(name)), None)


def is_spawned(argv: Sequence[str]) -> bool:
    """A child of Python's `multiprocessing`: it has no title, and its parent tells its role.

    SGLang's HTTP server is one, below its engine actor.
    """
    kind, name, _ = _python_program(argv[:_MOST_WORDS])
    return kind == "-c" and "multiprocessing.spawn" in name[:200]


def title_of(argv: Sequence[str]) -> str:
    """The command line on one line, with secrets masked, cut to a bearable length."""
    return " ".join(masked_words(argv[:_MOST_WORDS])).strip()[:_LONGEST_TITLE]


def _python_program(argv: Sequence[str]) -> tuple[str, str, Sequence[str]]:
    """What Python was told to run: (`script`, `-m` or `-c`, its name or text, what follows)."""
    if not argv or not _PYTHON.fullmatch(argv[0]):
        return "", "", ()
    index = 1
    while index < len(argv):
        word = argv[index]
        if word in ("-m", "-c"):
            following = argv[index + 1 :]
            return word, following[0] if following else "", following[1:]
        if not word.startswith("-"):
            return "script", word, argv[index + 1 :]
        index += 2 if word in _TAKES_VALUE else 1
    return "", "", ()
