"""Whether what runs now is the run that is meant: pids and the ids of jobs are given again."""

from __future__ import annotations

from tui.model.launch import Attachment
from tui.runs.attachment import attachment_of
from tui.runs.merge import FoundRun
from tui.runs.state_dir import run_id


def is_of(run: FoundRun, attachment: Attachment) -> bool:
    """Whether it is in the same container, saves to the same folder, or has the same command."""
    seen = attachment_of(run)
    before, now = attachment.container, seen.container
    words = attachment.launch.argv
    return (
        (before is not None and now is not None and before.value == now.value)
        or run_id(seen) == run_id(attachment)
        or (bool(words) and words == seen.launch.argv)
    )
