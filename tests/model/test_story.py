"""The story of a run, folded from its log."""

from __future__ import annotations

from pathlib import Path

import logs
import pytest

from tui.model import events
from tui.model.reduce import _READINGS
from tui.model.story import FOLDS


def one_rollout(number: int, minute: int, *, step_time: int = 20) -> list[str]:
    """A rollout of one minute, its two steps, and the weight update after it."""
    at = f"10:{minute:02d}"
    return [
        logs.rollout(f"{at}:20", f"perf {number}: {{'perf/rollout_time': 19.5}}"),
        logs.trainer(f"{at}:21", "Timer train_wait end (elapsed: 21.0s)"),
        logs.trainer(f"{at}:21", "Timer train start"),
        logs.trainer(f"{at}:22", "Timer actor_train start"),
        logs.step(f"{at}:30", 2 * number),
        logs.step(f"{at}:40", 2 * number + 1),
        logs.trainer(f"{at}:40", f"Timer actor_train end (elapsed: {step_time}.0s)"),
        logs.trainer(f"{at}:40", "Timer train end (elapsed: 19.0s)"),
        logs.trainer(f"{at}:40", "Timer train_wait start"),
        logs.trainer(f"{at}:41", f"perf {number}: {{'perf/train_wait_time': 21.0}}"),
        logs.trainer(f"{at}:42", "Timer update_weights start"),
        logs.trainer(f"{at}:44", "Timer update_weights end (elapsed: 2.0s)"),
    ]


def test_every_event_has_one_fold() -> None:
    kinds = {
        kind
        for kind in vars(events).values()
        if isinstance(kind, type) and issubclass(kind, events.Event) and kind is not events.Event
    }

    assert set(FOLDS) | set(_READINGS) == kinds
    assert not set(FOLDS) & set(_READINGS)


def test_a_run_is_at_the_rollout_it_generates() -> None:
    story = logs.story_of([*one_rollout(4, 0), *one_rollout(5, 1)])

    assert story.phase is not None
    assert story.phase.name == "generate"
    assert story.rollout == 6
    assert story.training_rollout == 5
    assert story.step == 11
    assert story.steps_per_rollout == 2
    assert story.rollouts_done == 2


def test_generation_is_timed_by_the_rollout_managers_own_figure() -> None:
    story = logs.story_of([*one_rollout(4, 0), *one_rollout(5, 1)])

    assert story.durations["generate"].samples_s == (19.5,)


def test_the_first_duration_of_a_phase_is_left_out_when_there_are_others() -> None:
    story = logs.story_of(
        [*one_rollout(0, 0, step_time=95), *one_rollout(1, 1), *one_rollout(2, 2)]
    )

    assert story.durations["actor_train"].median_s() == 20.0
    assert [span.seconds for span in story.spans] == [60.0, 60.0]


def test_megatron_prints_every_step_twice() -> None:
    story = logs.story_of([logs.step("10:00:00", 3), logs.step("10:00:00", 3)])

    assert story.steps_seen == 1


def test_a_save_that_is_due_is_the_phase_until_it_is_said_to_be_done() -> None:
    launch = "Running entrypoint for job j: python3 train.py --save /c --save-interval 5 --num-rollout 20"
    before = logs.story_of([launch, *one_rollout(4, 0)[:-2]])
    after = logs.story_of(
        [
            launch,
            *one_rollout(4, 0)[:-2],
            logs.trainer(
                "10:00:48", "[FSDP] Saved checkpoint to /c/iter_0000005", "checkpoint.py:248"
            ),
        ]
    )

    assert before.phase is not None
    assert before.phase.name == "save"
    assert after.durations["save"].samples_s == (7.0,)
    assert after.saves[-1].iteration == 5
    assert after.phase is not None
    assert after.phase.name == "train_wait"


def test_nan_is_remembered_until_the_numbers_are_back() -> None:
    bad = [logs.step("10:00:00", 1), logs.step("10:01:00", 2, loss="nan")]
    story = logs.story_of([*bad, logs.step("10:02:00", 3, loss="nan")])
    healed = logs.story_of([*bad, logs.step("10:02:00", 3)])

    assert story.non_finite is not None
    assert story.non_finite.number == 2
    assert healed.non_finite is None


def test_a_new_attempt_in_the_same_log_starts_its_own_count(data: Path) -> None:
    first = logs.lines_of(data / "captures" / "fresh.log")
    second = logs.lines_of(data / "captures" / "resume.log")
    story = logs.story_of([*first, *second])

    assert story.attempt == 2
    assert story.first_rollout == 4
    assert story.rollouts_done == 2
    assert [save.iteration for save in story.saves] == [2, 4, 6]
    assert [x for x, _ in story.series["rollout/raw_reward"].points] == [0, 1, 2, 3, 4, 5]


def test_a_retry_storm_is_one_thing() -> None:
    url = "http://192.0.2.1:3000/generate"
    lines = [
        logs.rollout(
            f"10:00:{second:02d}",
            f"Error: x, retrying... (attempt {second}/60, url={url}, response=None)",
            "http_utils.py:226",
        )
        for second in range(1, 9)
        for _ in range(4)
    ]
    story = logs.story_of(lines)

    assert story.retries is not None
    assert (story.retries.attempt, story.retries.limit, story.retries.count) == (8, 60, 32)
    assert [moment.text for moment in story.timeline] == ["generate requests fail and are retried"]


@pytest.mark.parametrize("seconds", [30, 300])
def test_a_driver_that_trains_on_has_not_ended_by_its_traceback(seconds: int) -> None:
    lines = [
        logs.step("10:00:00", 1),
        "Traceback (most recent call last):",
        "ValueError: something",
        logs.step(f"10:0{seconds // 60}:{seconds % 60:02d}", 2),
    ]
    story = logs.story_of(lines)

    assert (story.ending is None) == (seconds > 60)
