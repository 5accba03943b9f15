"""What can go wrong in a simulated run, by name: one registry for help, parsing and the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui.demo.checkpoint import Stage

DEFAULT_ROLLOUT = 2


FAULTS: dict[str, str] = {
    "engine-dies": "engine 0's process is gone in mid-generation; its requests retry",
    "engine-hangs": "engine 0 answers /health, but no token moves and its requests stay open",
    "stall": "the trainer hangs in actor_train, for ever",
    "nan": "grad_norm, then loss, is nan from this rollout on; the run goes on",
    "disk-full": "the save fails with ENOSPC and leaves a partial checkpoint; the job fails",
    "trainer-dies": "the trainer's worker dies in actor_train; the job fails",
    "fresh-start": "--load names an empty place, so the run silently starts at rollout 0",
    "memory-floor": "the box's available memory falls below 8 GiB within seconds",
    **{
        f"save-killed-{stage.value}": f"SIGKILL during the save, at its stage {stage.name.lower()}"
        for stage in Stage
    },
}


class UnknownFaultError(ValueError):
    """There is no fault of that name."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of one run, each with the rollout it strikes at."""

    rollouts: dict[str, int]

    def now(self, name: str, rollout: int) -> bool:
        """The fault strikes in exactly this rollout."""
        return self.rollouts.get(name) == rollout

    def since(self, name: str, rollout: int) -> bool:
        """The fault struck in this rollout or before it."""
        return name in self.rollouts and rollout >= self.rollouts[name]

    def chosen(self, name: str) -> bool:
        return name in self.rollouts

    def killed_at(self, rollout: int) -> Stage | None:
        """The stage of this rollout's save at which the process is killed."""
        return next((stage for stage in Stage if self.now(f"save-killed-{stage}", rollout)), None)

    def saves_at(self, rollout: int) -> bool:
        """A fault of the save strikes here, so there has to be a save."""
        return self.killed_at(rollout) is not None or self.now("disk-full", rollout)


def parsed(texts: Sequence[str]) -> Faults:
    """Faults from `NAME` or `NAME@ROLLOUT`."""
    rollouts: dict[str, int] = {}
    for text in texts:
        name, _, rollout = text.partition("@")
        if name not in FAULTS:
            raise UnknownFaultError(f"no fault {name!r}; there are {', '.join(sorted(FAULTS))}")
        if rollout and not rollout.isdecimal():
            raise UnknownFaultError(f"{text!r}: a rollout is a number from 0")
        rollouts[name] = int(rollout) if rollout else DEFAULT_ROLLOUT
    return Faults(rollouts)
