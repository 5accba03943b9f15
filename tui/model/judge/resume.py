"""How this attempt began: resumed, fresh, or silently wrong. Proved by the log, never assumed."""

from __future__ import annotations

from tui.model.events import LoadPart, LoadResult
from tui.model.progress import LoadRecord, Story
from tui.model.reading import Known
from tui.model.snapshot import Resume, ResumeProof, Snapshot
from tui.model.story.phases import first_rollout_of


def resume_of(snapshot: Snapshot) -> ResumeProof:
    """The proof of the newest attempt."""
    story = snapshot.story
    weights = _part(story, LoadPart.ALL) or _part(story, LoadPart.MODEL)
    if weights is not None and weights.result == LoadResult.FAILED.value:
        line = "loading the weights failed: training went on from the base model"
        return ResumeProof(
            outcome=Resume.SILENT_FRESH,
            line=line,
            checkpoint=weights.path,
            first_rollout=story.first_rollout,
            evidence=(weights.detail,),
        )
    if weights is not None and weights.result in (
        LoadResult.LOADED.value,
        LoadResult.STARTED.value,
    ):
        return _resumed(story, weights)
    return _without_load(snapshot, weights)


def _part(story: Story, part: LoadPart) -> LoadRecord | None:
    return next((load for load in story.loads if load.part == part.value), None)


def _resumed(story: Story, weights: LoadRecord) -> ResumeProof:
    megatron = weights.part == LoadPart.ALL.value
    expected = None
    if weights.iteration is not None:
        expected = first_rollout_of(weights.iteration, is_megatron=megatron)
    first = story.first_rollout
    outcome, line = _outcome(story, weights, expected, megatron=megatron)
    return ResumeProof(
        outcome=outcome,
        line=line,
        checkpoint=weights.path,
        first_rollout=first,
        expected_rollout=expected,
        evidence=tuple(
            load.detail
            for load in story.loads
            if outcome is not Resume.INCOMPLETE or load.result != LoadResult.LOADED.value
        ),
    )


def _outcome(
    story: Story, weights: LoadRecord, expected: int | None, *, megatron: bool
) -> tuple[Resume, str]:
    first = story.first_rollout
    if first is None:
        return Resume.PENDING, f"loaded {weights.path}, first rollout not seen yet"
    if expected is not None and first != expected:
        told = f"loaded iteration {weights.iteration}, so rollout {expected} was due"
        return Resume.WRONG_NUMBER, f"{told}, but it began at {first}"
    missing = [] if megatron else _missing(story)
    data = _part(story, LoadPart.DATA)
    if data is not None and data.result != LoadResult.LOADED.value:
        missing.append("data source (the data order starts again)")
    if missing:
        return Resume.INCOMPLETE, f"resumed at rollout {first} without {', '.join(missing)}"
    return Resume.RESUMED, f"resumed at rollout {first} from iteration {weights.iteration}"


def _missing(story: Story) -> list[str]:
    missing = []
    for part in (LoadPart.OPTIMIZER, LoadPart.LR_SCHEDULER):
        load = _part(story, part)
        if load is None or load.result != LoadResult.LOADED.value:
            missing.append(part.value)
    return missing


def _without_load(snapshot: Snapshot, weights: LoadRecord | None) -> ResumeProof:
    story = snapshot.story
    if not story.attempt and weights is None:
        return ResumeProof(outcome=Resume.NOT_SEEN, line="the start is not in what was read")
    first = story.first_rollout
    evidence = (weights.detail,) if weights is not None else ()
    older = _older_checkpoints(snapshot)
    if older and (first == 0 or (first is None and weights is not None)):
        names = ", ".join(str(iteration) for iteration in older[:4])
        line = f"started fresh at rollout 0 although checkpoints exist ({names})"
        return ResumeProof(
            outcome=Resume.SILENT_FRESH,
            line=line,
            checkpoint=weights.path if weights else "",
            first_rollout=first,
            evidence=evidence,
        )
    if first is None:
        return ResumeProof(outcome=Resume.PENDING, line="starting", evidence=evidence)
    if first == 0:
        return ResumeProof(
            outcome=Resume.FRESH,
            line="started fresh at rollout 0",
            first_rollout=0,
            evidence=evidence,
        )
    line = f"began at rollout {first}; no line about loading was seen"
    return ResumeProof(outcome=Resume.NOT_SEEN, line=line, first_rollout=first, evidence=evidence)


def _older_checkpoints(snapshot: Snapshot) -> tuple[int, ...]:
    """Iterations on disk that were there before this attempt began and that it did not write."""
    story = snapshot.story
    if not isinstance(snapshot.checkpoints, Known) or story.started_at is None:
        return ()
    own = {save.iteration for save in story.saves if (save.saved_at or 0.0) >= story.started_at}
    return tuple(
        checkpoint.iteration
        for checkpoint in snapshot.checkpoints.value.checkpoints
        if checkpoint.taken_at < story.started_at and checkpoint.iteration not in own
    )
