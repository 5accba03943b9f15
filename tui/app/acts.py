"""Commands that change the world, and those by which a person confirms it.

Nothing of this happens at the press of its key: first it is shown what it would do.
"""

from __future__ import annotations

from tui.app.command import Command, Where

ACTS = (
    Command(
        name="save",
        keys=("s",),
        label="save now",
        short_label="save",
        sentence="Ask Miles to save at the end of this rollout, and see it land on disk.",
        action="app.ask('save')",
        dangerous=True,
        footer_rank=1,
    ),
    Command(
        name="kill-and-resume",
        keys=("k",),
        label="kill and resume",
        short_label="kill+resume",
        sentence="Stop the run, start the same command again, and prove that it resumed.",
        action="app.ask('resume')",
        dangerous=True,
        footer_rank=2,
    ),
    Command(
        name="convert",
        keys=("c",),
        label="convert",
        sentence="Turn the selected checkpoint into a Hugging Face folder, and prove the weights.",
        action="app.ask('convert')",
        where=Where.CHECKPOINT,
        dangerous=True,
        footer_rank=3,
    ),
    Command(
        name="roll-back",
        keys=("b",),
        label="roll back",
        short_label="rollback",
        sentence="Make the selected checkpoint the one a resume loads; nothing is deleted.",
        action="app.ask('rollback')",
        where=Where.CHECKPOINT,
        dangerous=True,
        footer_rank=4,
    ),
    Command(
        name="undo-roll-back",
        keys=("u",),
        label="undo roll back",
        sentence="Put back what the last roll back moved aside.",
        action="app.ask('undo rollback')",
        dangerous=True,
    ),
    Command(
        name="resume",
        keys=("r",),
        label="resume",
        sentence="Start a run that has ended again, and prove that it resumed.",
        action="app.resume",
        dangerous=True,
    ),
    Command(
        name="stop",
        keys=("K",),
        label="stop",
        sentence="Stop the run without saving; its name has to be typed.",
        action="app.ask('stop')",
        dangerous=True,
    ),
    Command(
        name="autopsy",
        keys=("a",),
        label="autopsy",
        sentence="Write down what the run's processes are at, and stop nothing.",
        action="app.ask('autopsy')",
        dangerous=True,
    ),
    Command(
        name="actions",
        keys=("x",),
        label="actions",
        short_label="acts",
        sentence="Show the action under way, step by step, and those before it.",
        action="app.actions",
        footer_rank=3,
    ),
)
"""Ask for something to be done to the run."""

ANSWERS = (
    *(
        Command(
            name=f"choice-{number}",
            keys=(str(number),),
            label="change",
            sentence=f"Turn over choice {number} of what is to be confirmed.",
            action=f"screen.turn_over({number - 1})",
            where=Where.QUESTION,
        )
        for number in range(1, 4)
    ),
    Command(
        name="next-button",
        keys=("tab", "right"),
        label="other button",
        sentence="Go to the next button.",
        action="screen.next_button(1)",
        where=Where.QUESTION,
        footer_rank=1,
    ),
    Command(
        name="previous-button",
        keys=("shift+tab", "left"),
        label="previous button",
        sentence="Go to the previous button.",
        action="screen.next_button(-1)",
        where=Where.QUESTION,
    ),
    Command(
        name="answer",
        keys=("enter",),
        label="press it",
        sentence="Press the button in brackets.",
        action="screen.answer",
        where=Where.QUESTION,
        footer_rank=0,
    ),
    Command(
        name="finish",
        keys=("f",),
        label="finish",
        sentence="Finish the action that was interrupted.",
        action="screen.finish",
        where=Where.ACTIONS,
        dangerous=True,
        footer_rank=0,
    ),
    Command(
        name="give-up",
        keys=("g",),
        label="give up",
        sentence="Close the action that was interrupted, as it stands.",
        action="screen.give_up",
        where=Where.ACTIONS,
        dangerous=True,
        footer_rank=1,
    ),
    Command(
        name="leave-off",
        keys=("c",),
        label="leave off",
        sentence="Ask the action under way to leave off, where it can.",
        action="screen.leave_off",
        where=Where.ACTIONS,
        dangerous=True,
        footer_rank=2,
    ),
)
"""On the question that this leads to, and on the page of what is under way."""
