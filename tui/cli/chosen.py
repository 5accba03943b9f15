"""Which run a command line means."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tui.attach import Target, found, has_target
from tui.errors import NothingFoundError, UsageError
from tui.model.launch import Attachment

if TYPE_CHECKING:
    from tui.cli.arguments import Arguments


def target_of(arguments: Arguments) -> Target:
    """What was named; nothing at all is fine."""
    return Target(
        name=arguments.run,
        log=arguments.log,
        checkpoints=arguments.checkpoints,
        engines=tuple(arguments.engine),
        container=arguments.container,
    )


def chosen_run(arguments: Arguments) -> Attachment:
    """The run that is meant: one that lives, else the one that was seen last.

    Raises:
        UsageError: there are several, and none was named.
        NothingFoundError: there is none.
    """
    finding = found(target_of(arguments), at=time.time(), past=True)
    if has_target(finding.attachment):
        return finding.attachment
    if not finding.choices:
        raise NothingFoundError("no Miles run was found", "\n".join(finding.attachment.notes))
    if len(finding.choices) > 1 and finding.choices[0].state != "gone":
        names = ", ".join(run.handle for run in finding.choices)
        raise UsageError(f"there are {len(finding.choices)} runs on this machine: {names}")
    return finding.choices[0].attachment
