"""Ask a run to save, once, and see the checkpoint land on disk.

A save that is under way already brings what is asked for, so it is waited for, and nothing is asked
unless it comes to nothing. What was whole before is noted before the trigger is created: whether
the process that asked lives on or not, a save is known by the checkpoint it brought.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from tui.actions.context import Context, Done
from tui.actions.errors import StepFailed
from tui.actions.liveness import lives
from tui.actions.save_watch import FolderWatch, LogWatch
from tui.actions.trigger import Look, Trigger
from tui.model.checkpoint import Checkpoint
from tui.model.plan import AskToSave
from tui.view.numbers import duration, size, time_of_day

_LOOK_S, _LOOK_INSIDE_S = 0.3, 5.0
"""How often it is looked; a look inside a container starts a process there."""
_UNREACHABLE_S = 30.0
_LINE_S = 15.0
"""Ray hands on a line of the log within a second or two."""
_LATE_S = 60.0
"""For a checkpoint to be seen whole after the request is gone: file systems keep old answers."""


def perform(step: AskToSave, context: Context) -> Done:
    """Ask and wait; or wait for what was asked before."""
    try:
        return _Saving(step=step, context=context).carried_out()
    except _RunEnded as ended:
        if not step.may_end:
            raise
        return Done(line=f"not saved: {ended.line}")


class _RunEnded(StepFailed):
    """Nobody is there any more who could save."""


@dataclass(slots=True, kw_only=True)
class _Saving:
    step: AskToSave
    context: Context
    trigger: Trigger = field(init=False)
    folder: FolderWatch = field(init=False)
    log: LogWatch = field(init=False)

    def __post_init__(self) -> None:
        step, context = self.step, self.context
        self.trigger = Trigger(
            path=step.trigger,
            here=step.host_trigger,
            container_id=step.container_id,
            driver=step.target.driver if step.target is not None else None,
        )
        self.folder = FolderWatch(step.save_folder)
        self.log = LogWatch(step.log, again=context.again)

    def carried_out(self) -> Done:
        if "wholes_before" not in self.context.facts:
            self.folder.look(self.context.clock())
            self.context.note(
                "looking for a save that is under way", wholes_before=self.folder.wholes()
            )
        if "asked_at" not in self.context.facts:
            brought = self._brought_unasked()
            if brought is not None:
                return self._done(brought)
        if "asked_at" not in self.context.facts:
            self._ask()
        return self._awaited()

    def _brought_unasked(self) -> Checkpoint | None:
        """What a save brings that is under way, or ended since this step was first begun."""
        for look in self._looks():
            if look is Look.PENDING:
                self._note_asked(is_ours=False)
                return None
            saving = self.folder.under_way()
            if saving is None:
                break
            self._note_picked_up(saving.iteration)
        return self._brought()

    def _ask(self) -> None:
        if not self._runs():
            raise self._ended()
        self._note_asked(is_ours=self._create())

    def _create(self) -> bool:
        until = time.monotonic() + _UNREACHABLE_S
        while True:
            try:
                return self.trigger.create()
            except OSError as error:
                if not self._runs():
                    raise self._ended() from error
                if time.monotonic() > until or self.step.host_trigger:
                    raise StepFailed(
                        f"the save could not be asked for: {error.strerror or error}",
                        f"by hand: touch {self.step.trigger}, where the run runs",
                    ) from error
            self.context.pause(_LOOK_INSIDE_S)

    def _awaited(self) -> Done:
        gone_since: float | None = None
        for look in self._looks():
            self._see_picked_up()
            if look is Look.PENDING or look is None:
                gone_since = None
                continue
            brought = self._brought()
            gone_since = gone_since or time.monotonic()
            waited_s = time.monotonic() - gone_since
            if brought is not None:
                self._note_durable(brought)
            if self._is_told(brought) or (waited_s > _LINE_S and self._may_be_untold(brought)):
                return self._done(brought)
            if waited_s > _LATE_S:
                raise StepFailed(
                    "the request is gone, and no whole checkpoint came of it",
                    "somebody else removed it, or the save failed: look at the log, then ask again",
                )
        brought = self._brought()
        if brought is None:
            raise self._ended()
        return self._done(brought)

    def _is_told(self, brought: Checkpoint | None) -> bool:
        """All that can be seen says that it is durable."""
        if brought is None:
            return not self.step.save_folder and bool(self.log.saved)
        return brought.iteration in self.log.saved or not self.step.log

    def _may_be_untold(self, brought: Checkpoint | None) -> bool:
        """The run has removed its request, so it is durable; a line may be missing all the same."""
        return brought is not None or not self.step.save_folder

    def _looks(self) -> Iterator[Look | None]:
        """Look every now and then while the run goes on, until it is over or left off."""
        until = time.monotonic() + self.step.deadline_s
        every_s = _LOOK_S if self.step.host_trigger else _LOOK_INSIDE_S
        while True:
            runs = self._runs()
            look = self._look()
            now = self.context.clock()
            self.log.look(now)
            self.folder.look(now)
            if not runs:
                return
            yield look
            if self.context.is_cancelled:
                raise StepFailed(f"left off waiting; {self._what_stays()}")
            if time.monotonic() > until:
                raise StepFailed(
                    f"no save within {duration(self.step.deadline_s)}; {self._what_stays()}",
                    "a run that hangs is for kill and resume",
                )
            self.context.pause(every_s)

    def _look(self) -> Look | None:
        """What is at the trigger's path; None while nobody can tell."""
        try:
            return self.trigger.look()
        except OSError:
            return None

    def _runs(self) -> bool:
        target = self.step.target
        return target is None or lives(target, self.context.clock())

    def _brought(self) -> Checkpoint | None:
        return self.folder.brought(self.context.facts["wholes_before"])

    def _what_stays(self) -> str:
        if "asked_at" not in self.context.facts:
            return "nothing was asked"
        return "the request stays, and the run saves when it comes to its save point"

    def _ended(self) -> _RunEnded:
        remedy = "resume it"
        if self._look() is Look.PENDING:
            remedy += f"; {self.step.trigger} stays, so it saves after its first rollout then"
        return _RunEnded("the run ended before it had saved", remedy)

    def _done(self, brought: Checkpoint | None) -> Done:
        if brought is None:
            told = f"checkpoint {max(self.log.saved)}" if self.log.saved else "a checkpoint"
            line = f"{told} was saved where it cannot be seen from here"
            return Done(line=f"{line}: {self._times()}")
        line = (
            f"checkpoint {brought.iteration} is whole: {self._times()}, {size(brought.size_bytes)}"
        )
        if not brought.has_data_state:
            line += "; the data source's position was not saved with it"
        if not self._runs():
            line += "; the run has ended since"
        return Done(line=line, facts={"saved_iteration": str(brought.iteration)})

    def _times(self) -> str:
        stages = (("asked", "asked_at"), ("picked up", "picked_up_at"), ("on disk", "durable_at"))
        told = [
            f"{word} {_moment(float(self.context.facts[key]))}"
            for word, key in stages
            if key in self.context.facts
        ]
        if "asked_at" in self.context.facts:
            whole_s = self.context.clock() - float(self.context.facts["asked_at"])
            told.append(f"{duration(whole_s)} in all")
        return ", ".join(told) or "unasked"

    def _note_asked(self, *, is_ours: bool) -> None:
        line = f"asked for a save: {self.step.trigger} created"
        if not is_ours:
            line = f"a save was asked for already, and is waited for: {self.step.trigger} is there"
        self.context.note(line, asked_at=repr(self.context.clock()))

    def _see_picked_up(self) -> None:
        saving = self.folder.under_way() or self._brought()
        if saving is not None:
            self._note_picked_up(saving.iteration)
        elif self.log.started:
            self._note_picked_up(max(self.log.started))

    def _note_picked_up(self, iteration: int) -> None:
        if "picked_up_at" not in self.context.facts:
            line = f"picked up: checkpoint {iteration} is being saved"
            self.context.note(line, picked_up_at=repr(self.context.clock()))

    def _note_durable(self, brought: Checkpoint) -> None:
        if "durable_at" not in self.context.facts:
            line = f"checkpoint {brought.iteration} is whole, and the request is gone"
            self.context.note(line, durable_at=repr(self.context.clock()))


def _moment(at: float) -> str:
    return time_of_day(at, time.localtime(at).tm_gmtoff)
