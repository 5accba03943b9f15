"""A run as a guard sees it: what becomes of it, what is heard of it, what is done to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import fakes
from fake_box import NOW, container, gpu, memory, processes, report, wave
from fake_run import checkpoint, tree

from tui.model.action import ActionKind, ActionRecord, ActionState
from tui.model.checkpoint import CheckpointState, CheckpointTree, Soundness, Verification
from tui.model.clock import stepped
from tui.model.events import TimePassed
from tui.model.launch import Container, ProcessTree
from tui.model.memory import GIB
from tui.model.progress import Clue, Progress
from tui.model.reading import Absence, Unknown, known
from tui.model.reduce import reduce
from tui.model.snapshot import Snapshot

HEALTHY = replace(fakes.running(), history={}, lines=())
MISSED = Unknown(why=Absence.TIMED_OUT, reason="no answer for 12 s")
SOUND = Verification(soundness=Soundness.SOUND, at=NOW)


def _box(**changes: Any) -> Container:
    return container(auto_remove=False, **changes)


@dataclass
class World:
    """The truth, and what of it is heard."""

    now: float = NOW
    fate: str = "alive"
    """alive, dead, stalled, killed (no exit code), asked (SIGTERM), finished."""
    fate_at: float = NOW
    step: int = 60
    clue: str = ""
    memory_gib: float = 60.0
    is_verified: bool = True
    has_checkpoint: bool = True
    missed: set[str] = field(default_factory=set)
    actions: list[ActionRecord] = field(default_factory=list)
    holder: str = ""
    alter: Callable[[Snapshot], Snapshot] = lambda snapshot: snapshot
    """What else is otherwise than fate makes it."""

    def becomes(self, fate: str, **changes: Any) -> None:
        """What happens now."""
        self.fate, self.fate_at = fate, self.now
        for name, value in changes.items():
            setattr(self, name, value)

    def acted(
        self, action: str, kind: ActionKind = ActionKind.RESUME, **changes: Any
    ) -> ActionRecord:
        """An action that was begun now."""
        record = ActionRecord(
            id=action,
            kind=kind,
            title=f"{kind.value} run-a",
            state=ActionState.OPEN,
            began_at=self.now,
            changed_at=self.now,
        )
        self.actions.append(replace(record, **changes))
        return self.actions[-1]

    def ended(self, state: ActionState = ActionState.DONE, **changes: Any) -> None:
        """The newest action ends now."""
        self.actions[-1] = replace(self.actions[-1], state=state, changed_at=self.now, **changes)
        self.holder = ""

    def snapshot(self) -> Snapshot:
        """As the monitor tells it now."""
        lived_at = self.now if self.fate == "alive" else self.fate_at
        told = stepped(HEALTHY, lived_at, lived_at - NOW)
        told = replace(
            told,
            now=self.now,
            story=replace(told.story, step=self.step, clues=self._clues()),
            log=replace(told.log, read_at=self.now, fault=None),
            memory=known(memory(available_bytes=int(self.memory_gib * GIB)), self.now),
            checkpoints=known(self._tree(), self.now),
            disk=replace(told.disk, at=self.now),
            gpus=known(report(), self.now),
            missed=dict.fromkeys(self.missed, MISSED),
            actions=tuple(self.actions),
            action_holder=self.holder,
            engines=(),
        )
        return reduce(self.alter(self._fated(told)), TimePassed(at=self.now))

    def _clues(self) -> tuple[Clue, ...]:
        if not self.clue:
            return ()
        return (Clue(kind=self.clue, line=f"{self.clue}!", source="", at=self.fate_at),)

    def _tree(self) -> CheckpointTree:
        if not self.has_checkpoint:
            return tree(checkpoint(60, state=CheckpointState.PARTIAL, tracked=True))
        verification = SOUND if self.is_verified else None
        return tree(checkpoint(60, tracked=True, verification=verification))

    def _fated(self, told: Snapshot) -> Snapshot:
        match self.fate:
            case "alive":
                return replace(
                    told,
                    processes=known(processes(), self.now),
                    container=known(_box(), self.now),
                )
            case "stalled":
                return self._stalled(told)
            case "finished":
                return self._exited(told, 0)
            case "asked":
                return self._exited(told, 143)
            case "killed":
                return self._exited(told, None)
            case _:
                return self._exited(told, 1)

    def _exited(self, told: Snapshot, code: int | None) -> Snapshot:
        box = _box(status="exited", exit_code=code, finished_at=self.fate_at)
        gone = ProcessTree(driver_exited_at=self.fate_at)
        return replace(told, container=known(box, self.now), processes=known(gone, self.now))

    def _stalled(self, told: Snapshot) -> Snapshot:
        at = self.fate_at
        idle = tuple(replace(each, cpu_ratio=0.0) for each in processes().processes)
        seconds = max(10, int(self.now - at))
        return replace(
            told,
            story=replace(told.story, progress=Progress(at=at, what="hung"), last_line_at=at),
            processes=known(ProcessTree(processes=idle), self.now),
            container=known(_box(), self.now),
            gpus=known(report(gpu(utilisation_ratio=known(0.0, self.now))), self.now),
            history={"gpu0.utilisation_ratio": wave(min(600, seconds), 0.0, 0.0, last_x=self.now)},
        )
