"""How a step ends when it does not end well, and how the making of a plan does."""

from __future__ import annotations

from collections.abc import Mapping

from tui.model.plan import Refusal


class StepFailed(Exception):  # noqa: N818 - an outcome, not a defect
    """The step came to something else than was wanted. The action ends here, and says so."""

    def __init__(self, line: str, remedy: str = "", facts: Mapping[str, str] | None = None) -> None:
        super().__init__(line)
        self.line = line
        self.remedy = remedy
        self.facts = facts or {}


class Refused(Exception):  # noqa: N818 - an answer, not a defect
    """There is no plan. Whoever makes plans catches it, and answers with its refusal."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.refusal = Refusal(reason=reason, remedy=remedy)
