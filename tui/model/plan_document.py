"""A plan as a versioned JSON document, and back; and as one that may be shown."""

from __future__ import annotations

import json
from typing import Any, get_args

from tui.model import plan as plans
from tui.model.codec import decoded, encoded
from tui.model.plan import ActionPlan, Step

VERSION = 1
_STEPS = {step.name: step for step in get_args(Step)}
_SHOWN = ("id", "kind", "title", "run_id", "run_name", "made_at", "go", "typed_name")


def plan_text(plan: ActionPlan) -> str:
    """The whole plan. Holds secrets: for files of mode 0600 only."""
    return json.dumps({"milepost_plan": VERSION, **_encoded(plan)})


def plan_of(text: str) -> ActionPlan:
    """The plan of a document.

    Raises:
        ValueError: the document is none, or of another version.
    """
    try:
        document = json.loads(text)
        if document.pop("milepost_plan", None) != VERSION:
            raise ValueError(f"not a plan of version {VERSION}")
        steps = tuple(decoded(step, _STEPS[step.pop("step")]) for step in document.pop("steps"))
        plan = decoded({**document, "steps": []}, ActionPlan)
        return plans.with_steps(plan, steps)
    except (AttributeError, KeyError, TypeError) as fault:
        raise ValueError(f"not a plan: {fault!r}") from fault


def shown_plan(plan: ActionPlan) -> dict[str, Any]:
    """What of it is no secret: for `--dry-run --json`."""
    whole = encoded(plan)
    rows = whole["rows"]
    return {
        "milepost_plan": VERSION,
        **{key: whole[key] for key in _SHOWN},
        "rows": rows,
        "steps": [step.name for step in plan.steps],
    }


def _encoded(plan: ActionPlan) -> dict[str, Any]:
    whole: dict[str, Any] = encoded(plan)
    for step, fields in zip(plan.steps, whole["steps"], strict=True):
        fields["step"] = step.name
    return whole
