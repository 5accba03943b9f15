"""One physical log line taken apart: who printed it, when, and what it says.

Sources: Miles' utils/logging_utils.py (its own form, without a level), Ray's worker prefix and
its de-duplication suffix (ray/_private/ray_logging), SGLang's scheduler form, Ray's CLI form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from tui.miles.stamps import STAMP, seconds_of
from tui.model.text import without_escapes

_PREFIX = re.compile(
    r"\((?P<cls>[A-Za-z_][\w.:]*(?: [^()]{0,60}?)?) pid=(?P<pid>\d{1,9})(?:, ip=[^)]{1,60})?\) ?"
)
_CLUSTER_PREFIX = re.compile(r"\((?P<cls>raylet|autoscaler|gcs_server|scheduler)[^)]{0,40}\) ?")
_REPEATED = re.compile(r" ?\[repeated (\d{1,9})x across cluster\].*$", re.DOTALL)
_MILES = re.compile(
    rf"\[(?P<stamp>{STAMP})(?:\.(?P<fraction>\d{{3}}) (?P<name>[\w.-]{{0,80}}))?\] "
    r"(?P<file>[\w.]{1,80}\.py):\d{1,6} - (?P<message>.*)$",
    re.DOTALL,
)
_SGLANG = re.compile(
    rf"\[(?P<stamp>{STAMP})(?:\.\d{{3}})?(?: (?:DP|PP|TP|EP)\d{{1,4}})*\] (?P<message>.*)$",
    re.DOTALL,
)
_RAY_CLI = re.compile(
    rf"(?P<stamp>{STAMP}),(?P<fraction>\d{{3}})\s+(?P<level>INFO|SUCC|ERR|WARN\w*|ERROR)\s+"
    r"\S{1,80} -- (?P<message>.*)$",
    re.DOTALL,
)
_RAYLET = re.compile(
    rf"\[(?P<stamp>{STAMP}),(?P<fraction>\d{{3}}) [A-Z] [^\]]{{1,40}}\] (?P<message>.*)$", re.DOTALL
)
_MEGATRON = re.compile(
    rf"\s*\[(?P<stamp>{STAMP})\.(?P<fraction>\d{{6}})\] (?P<message>.*)$", re.DOTALL
)

_NAMES_OF_CLASS = (
    ("RolloutManager", ("rollout_manager",)),
    ("TrainRayActor", ("actor_", "critic_")),
)


class Form(StrEnum):
    """Which program's line form a record has."""

    MILES = "miles"
    SGLANG = "sglang"
    RAY_CLI = "ray cli"
    RAYLET = "raylet"
    MEGATRON = "megatron"
    BARE = "bare"
    """No stamp: the rest of a record, a print, a progress bar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One physical line, without escapes."""

    form: Form
    cls: str
    """Ray actor class or cluster process; empty for the driver and for what has no prefix."""
    pid: int | None
    name: str
    """Miles' process name; empty where the form has none."""
    stamp: float | None
    """The line's own time in seconds, as if it were UTC."""
    message: str
    repeated: int = 0
    """Like lines of other processes that Ray folded into this one."""
    level: str = ""


def record_of(text: str, cls: str = "", pid: int | None = None) -> Record:
    """The record of one line; `cls` and `pid` are used where the line has no prefix of its own."""
    text, repeated = _without_repeats(without_escapes(text))
    if prefix := _PREFIX.match(text):
        cls, pid, text = prefix["cls"], int(prefix["pid"]), text[prefix.end() :]
    elif prefix := _CLUSTER_PREFIX.match(text):
        cls, pid, text = prefix["cls"], None, text[prefix.end() :]
    form, match = _form_of(text, cls)
    if match is None:
        return Record(
            form=form, cls=cls, pid=pid, name="", stamp=None, message=text, repeated=repeated
        )
    found = match.groupdict()
    return Record(
        form=form,
        cls=cls,
        pid=pid,
        name=found.get("name") or "",
        stamp=seconds_of(found["stamp"], found.get("fraction")),
        message=found["message"],
        repeated=repeated,
        level=found.get("level") or "",
    )


def _without_repeats(text: str) -> tuple[str, int]:
    if "across cluster]" not in text:
        return text, 0
    match = _REPEATED.search(text)
    if match is None:
        return text, 0
    return text[: match.start()], int(match.group(1))


def _form_of(text: str, cls: str) -> tuple[Form, re.Match[str] | None]:
    """The form and its match. A process writes in its own name only: all else is free text."""
    if text.startswith("["):
        if match := _MILES.match(text):
            return (Form.MILES, match) if _may_say(cls, match["name"]) else (Form.BARE, None)
        if cls == "raylet" and (match := _RAYLET.match(text)):
            return Form.RAYLET, match
        if match := _MEGATRON.match(text):
            return Form.MEGATRON, match
        if not cls.endswith(("RolloutManager", "TrainRayActor")) and (match := _SGLANG.match(text)):
            return Form.SGLANG, match
    elif not cls and text[:2] == "20" and (match := _RAY_CLI.match(text)):
        return Form.RAY_CLI, match
    elif text[:1].isspace() and (match := _MEGATRON.match(text)):
        return Form.MEGATRON, match
    return Form.BARE, None


def _may_say(cls: str, name: str | None) -> bool:
    if not cls or not name:
        return cls != "SGLangEngine"
    for known, names in _NAMES_OF_CLASS:
        if cls.endswith(known):
            return name.startswith(names)
    return False
