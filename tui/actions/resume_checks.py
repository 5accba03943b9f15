"""What speaks against a resume: that it is done already, or that it failed so before."""

from __future__ import annotations

from tui.actions.situation import Situation
from tui.model.action import ActionKind, ActionState
from tui.model.checkpoint import Checkpoint
from tui.model.judge.words import counted
from tui.model.plan import Ask, Refusal, Row
from tui.model.snapshot import Level

_REFUSED_AFTER = 2
"""As often the same failure came before, with nothing changed: the next time it comes again."""


def against(
    situation: Situation, best: Checkpoint | None, signature: str, ask: Ask
) -> Refusal | None:
    """Why it would be in vain."""
    return _reached(situation, best) or _same_again(situation, signature, ask)


def _reached(situation: Situation, best: Checkpoint | None) -> Refusal | None:
    total = situation.snapshot.story.launch.num_rollout
    if total is None or best is None or best.resumes_at < total:
        return None
    return Refusal(
        reason=f"all {total} rollouts are done: a resume would end at once, and call it a success",
        remedy="raise --num-rollout in the command, and start it with `milepost run -- COMMAND`",
    )


def _same_again(situation: Situation, signature: str, ask: Ask) -> Refusal | None:
    count, failure = _failures(situation, signature)
    if count < _REFUSED_AFTER or ask.force:
        return None
    return Refusal(
        reason=f"the last {count} resumes failed in the same way with nothing changed: {failure}",
        remedy="find the cause first, or insist: `milepost resume --force`",
    )


def again(situation: Situation, signature: str) -> list[Row]:
    """That it failed once already in this very way."""
    count, failure = _failures(situation, signature)
    if not count:
        return []
    text = f"failed {counted(count, 'time')} already with nothing changed since: {failure}"
    return [Row(label="Checks", text=text, level=Level.WARNING)]


def _failures(situation: Situation, signature: str) -> tuple[int, str]:
    """How many of the last resumes failed alike, with this very command and checkpoint."""
    count, failure = 0, ""
    for record in reversed(situation.records):
        if record.kind is not ActionKind.RESUME:
            continue
        told = record.facts.get("failure", "")
        alike = record.state is ActionState.FAILED and record.facts.get("signature") == signature
        if not alike or not told or (failure and told != failure):
            break
        count, failure = count + 1, told
    return count, failure
