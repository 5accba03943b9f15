"""Phases of a rollout, from Miles' timers where they exist and from what surrounds them elsewhere.

Generation, evaluation and FSDP's save have no timer on the trainer: they lie inside `train_wait`.
"""

from __future__ import annotations

from dataclasses import replace

from tui.model.events import BarMoved, PhaseEnded, PhaseStarted
from tui.model.progress import Bar, PhaseClock, Story
from tui.model.series import Durations
from tui.model.story.moments import moved

OUTER = frozenset({"train", "train_wait"})
"""Timers around other phases: they say little by themselves."""
NESTED = frozenset(
    {
        "update_weights_implementation",
        "finalize_and_resume_engines",
        "ref_model_update",
        "reconcile_adapters",
    }
)
GENERATE, EVAL, SAVE, WAIT = "generate", "eval", "save", "train_wait"
_NAMES = {"save_model": SAVE}


def phase_started(story: Story, event: PhaseStarted) -> Story:
    """A timer began."""
    story = moved(story, event.at, f"{event.phase} started")
    if event.role != "actor" or event.phase in NESTED:
        return story
    name = _NAMES.get(event.phase, event.phase)
    clock = PhaseClock(name=name, since=event.at)
    others = tuple(timer for timer in story.open_timers if timer.name != name)
    story = replace(story, open_timers=(*others, clock))
    if name in OUTER and story.phase is not None:
        return story
    return replace(story, phase=clock)


def phase_ended(story: Story, event: PhaseEnded) -> Story:
    """A timer ended, well or not."""
    story = moved(story, event.at, f"{event.phase} ended")
    if event.role != "actor" or event.phase in NESTED:
        return story
    name = _NAMES.get(event.phase, event.phase)
    story = replace(
        with_duration(story, name, event.elapsed_s),
        open_timers=tuple(timer for timer in story.open_timers if timer.name != name),
    )
    if name == "update_weights":
        story = replace(story, weights_updated_at=event.at)
        return entered(story, GENERATE, event.at)
    if story.phase is not None and story.phase.name == name:
        story = replace(story, phase=_open_phase(story, event.at))
    return story


def bar_moved(story: Story, event: BarMoved) -> Story:
    """A bar was drawn. Its first drawing may overtake older lines: only moves count."""
    old = story.bar
    same = old is not None and old.name == event.name and old.total == event.total
    if same and old is not None and old.done == event.done:
        return story
    bar = Bar(name=event.name, done=event.done, total=event.total, moved_at=event.at)
    story = replace(story, bar=bar)
    if event.done == 0:
        return story
    story = moved(story, event.at, f"{event.name} {event.done}/{event.total}")
    if _leaf(story) is not None:
        return story
    if event.name == "Rollout generation" and event.done < event.total:
        return entered(story, GENERATE, event.at)
    if event.name.startswith("Eval ") and event.done < event.total:
        return entered(story, EVAL, event.at)
    return story


def entered(story: Story, name: str, at: float) -> Story:
    """In phase `name` since `at`, unless it is there already or a timer says otherwise."""
    if story.phase is not None and story.phase.name == name:
        return story
    if _leaf(story) is not None:
        return story
    story = replace(story, phase=PhaseClock(name=name, since=at))
    if name == GENERATE:
        story = replace(story, rollout=_generated_rollout(story))
    return story


def with_duration(story: Story, name: str, seconds: float) -> Story:
    """With one duration more of a phase."""
    durations = dict(story.durations)
    durations[name] = durations.get(name, Durations()).add(seconds)
    return replace(story, durations=durations)


def first_rollout_of(iteration: int, *, is_megatron: bool) -> int:
    """The rollout a run begins with that loads this checkpoint. Miles' facts, step numbering."""
    return iteration + 1 if is_megatron else iteration


def _generated_rollout(story: Story) -> int | None:
    if story.training_rollout is not None:
        following = story.training_rollout + 1
        total = story.launch.num_rollout
        return story.training_rollout if total is not None and following >= total else following
    if story.rollout is not None:
        return story.rollout
    for load in story.loads:
        if load.result == "loaded" and load.iteration is not None:
            return first_rollout_of(load.iteration, is_megatron=load.part == "checkpoint")
    return 0 if story.attempt else None


def _leaf(story: Story) -> PhaseClock | None:
    leaves = [timer for timer in story.open_timers if timer.name not in OUTER]
    return leaves[-1] if leaves else None


def _open_phase(story: Story, at: float) -> PhaseClock:
    leaf = _leaf(story)
    if leaf is not None:
        return leaf
    for timer in reversed(story.open_timers):
        return PhaseClock(name=timer.name, since=at)
    return PhaseClock(name=WAIT, since=at)
