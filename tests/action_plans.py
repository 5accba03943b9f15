"""Plans of steps that leave a trace, to see what an executor does with them."""

from __future__ import annotations

from pathlib import Path

from tui.actions.context import Context, Done
from tui.actions.errors import StepFailed
from tui.model.action import ActionKind
from tui.model.plan import ActionPlan, MoveAside, Row, Step

STEPS = 3


def plan(steps: tuple[Step, ...] | None = None, *, made_at: float = 1_000.0) -> ActionPlan:
    """Three steps that each make one file."""
    return ActionPlan(
        id="20261129-181503-rollback-4f2a",
        kind=ActionKind.ROLLBACK,
        title="Roll run-a back to 60",
        run_id="run-a-1f0c93ab",
        run_name="run-a",
        made_at=made_at,
        rows=(Row(label="Moves", text="iter_0000080"),),
        steps=steps if steps is not None else tuple(map(step, range(STEPS))),
        go="roll back",
    )


def step(number: int) -> MoveAside:
    return MoveAside(root="/ckpt", paths=(f"iter_{number}",), quarantine="aside")


def perform(step: MoveAside, context: Context) -> Done:
    """Make its file, once: what a real step does by its own means."""
    file = Path(context.folder, step.paths[0])
    context.note(f"making {file.name}")
    if not file.exists():
        file.write_text("made")
    return Done(line=f"{file.name} made", facts={file.name: "there"})


def fail(step: MoveAside, context: Context) -> Done:
    raise StepFailed("disk full: --wandb-key abcdef123456", "make room")
