"""Why a run ended. A fact or `unknown`: Ray's list of usual suspects is neither."""

from __future__ import annotations

from tui.model.events import ClueKind
from tui.model.judge.standing import Standing
from tui.model.judge.state import SIGKILL_CODE
from tui.model.progress import Clue
from tui.model.reading import Known
from tui.model.snapshot import Cause, RunState, Snapshot
from tui.model.story.phases import SAVE

_TOLD = {
    ClueKind.QUOTA: "a write failed: the quota is used up",
    ClueKind.DISK_FULL: "a write failed: the disk, the quota or the storage target is full",
    ClueKind.SEGFAULT: "segmentation fault",
    ClueKind.GPU_MEMORY: "the GPU ran out of memory",
    ClueKind.HOST_MEMORY: "killed for memory",
    ClueKind.THREAD_LIMIT: "thread limit reached (EAGAIN)",
    ClueKind.GPU_LOST: "the GPU was lost or the driver failed",
    ClueKind.BAD_ARGUMENTS: "the command line was refused",
    ClueKind.STALE_RAY: "stale Ray address: an earlier cluster is gone, `ray stop` is needed",
    ClueKind.PORT_TAKEN: "a port is taken by a process of an earlier run",
    ClueKind.CHECKPOINT: "the checkpoint could not be read",
    ClueKind.CONVERTER: "this converter wants a Megatron checkpoint with common.pt; "
    "an FSDP folder needs convert_fsdp_to_hf",
    ClueKind.RETRIES: "the engines could not be reached and the requests were given up",
}
_TOLD_WITH_PHASE = (ClueKind.QUOTA, ClueKind.DISK_FULL, ClueKind.SEGFAULT)
_FLAG_IS_OLD_S = 10.0
_WEAK = (ClueKind.PYTHON, ClueKind.WORKER_DIED)


def cause_of(snapshot: Snapshot, standing: Standing) -> Cause | None:
    """The cause of a bad end; None while it runs or when it ended well."""
    if standing.state not in (RunState.FAILED, RunState.CRASHED):
        return None
    if (killed := _killed_for_memory(snapshot, standing)) is not None:
        return killed
    clues = snapshot.story.clues
    order = list(ClueKind)
    strong = [clue for clue in clues if ClueKind(clue.kind) not in _WEAK]
    if strong:
        best = min(strong, key=lambda clue: order.index(ClueKind(clue.kind)))
        kind = ClueKind(best.kind)
        where = _phase_of_death(snapshot, kind)
        return Cause(line=_TOLD[kind] + where, kind=best.kind, evidence=_evidence(clues, best))
    if "no rollout was trained" in standing.reason:
        line = "nothing was done: check --num-rollout against the checkpoint's rollout"
        return Cause(line=line, kind="unknown", evidence=(standing.reason,))
    return _weak_cause(clues) or _ended_from_outside(snapshot, standing) or _unknown(standing)


def _killed_for_memory(snapshot: Snapshot, standing: Standing) -> Cause | None:
    """By the container's OOM flag, unless that went up well before the end, for something else."""
    if not isinstance(snapshot.container, Known) or not snapshot.container.value.oom_killed:
        return None
    flagged = (each for each in snapshot.alert_log if each.alert.code == "container-oom")
    if any(record.first_at < standing.since - _FLAG_IS_OLD_S for record in flagged):
        return None
    code = snapshot.container.value.exit_code
    line = "killed for memory by the kernel (the container's OOM flag is set)"
    if code not in (None, SIGKILL_CODE):
        line = f"a process in the container was killed for memory (OOM flag), exit code {code}"
    return Cause(line=line, kind=ClueKind.HOST_MEMORY.value, evidence=(standing.reason,))


def _phase_of_death(snapshot: Snapshot, kind: ClueKind) -> str:
    story = snapshot.story
    if kind not in _TOLD_WITH_PHASE or story.phase is None:
        return ""
    # A timer's end is printed for a phase that failed, too: an unfinished save tells more.
    if story.phase.name == SAVE or (story.saves and story.saves[-1].saved_at is None):
        return " while saving a checkpoint"
    return f", in {story.phase.name}"


def _evidence(clues: tuple[Clue, ...], best: Clue) -> tuple[str, ...]:
    same = [clue.line for clue in clues if clue.kind == best.kind]
    return tuple(dict.fromkeys([best.line, *same]))[:4]


def _weak_cause(clues: tuple[Clue, ...]) -> Cause | None:
    died = [clue for clue in clues if clue.kind == ClueKind.WORKER_DIED.value]
    python = [clue for clue in clues if clue.kind == ClueKind.PYTHON.value]
    telling = [clue for clue in python if "ActorDied" not in clue.line]
    if telling and not died:
        return Cause(
            line=f"Python error: {telling[-1].line[:300]}",
            kind=ClueKind.PYTHON.value,
            evidence=tuple(clue.line for clue in telling[-3:]),
        )
    if died:
        line = "unknown: a worker process died, and nothing read says why"
        return Cause(line=line, kind="unknown", evidence=tuple(clue.line for clue in died[:3]))
    return None


def _ended_from_outside(snapshot: Snapshot, standing: Standing) -> Cause | None:
    """What the engine's own record of commands tells."""
    if not isinstance(snapshot.container, Known) or not snapshot.container.value.told_to_end:
        return None
    line = f"Docker was told to end its container (stop, kill or rm): {standing.reason}"
    return Cause(line=line, kind="ended from outside", evidence=(standing.reason,))


def _unknown(standing: Standing) -> Cause:
    line = f"unknown: {standing.reason}; nothing read says why"
    return Cause(line=line, kind="unknown", evidence=(standing.reason,))
