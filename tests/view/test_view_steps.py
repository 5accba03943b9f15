"""The steps pane: phases, the bar, the numbers, and what start-up shows before there are any."""

from __future__ import annotations

import math
from dataclasses import replace

import fakes
import pytest
from fake_box import MIN, NOW
from fake_run import durations, story
from rows_read import line_with, lines, roles_of, text

from tui.model.progress import Bar, NonFinite, PhaseClock
from tui.model.series import Series
from tui.model.snapshot import Snapshot
from tui.view import steps
from tui.view.rows import Look, Role, Row, plain

LOOK = Look()


def rows(snapshot: Snapshot, width: int = 100, height: int = 12) -> tuple[Row, ...]:
    return steps.rows(snapshot, width, height, LOOK)


def told_by(**changes: object) -> Snapshot:
    return fakes.running(story=story(**changes))


def test_phases_stand_in_their_order_with_the_open_one_running() -> None:
    assert lines(rows(fakes.running()))[0] == (
        "generate 1:32 · log_probs 0:09 · ▶ actor_train 0:34 of ~0:41 · save 0:46"
        " · update_weights 0:02"
    )


def test_a_phase_that_took_unusually_long_says_what_is_usual() -> None:
    slow = told_by(
        durations={"generate": durations(90.0, 90.0, 91.0, 92.0, 200.0)},
        phase=PhaseClock(name="actor_train", since=NOW),
    )
    assert "generate 3:20 (usual 1:31)" in text(rows(slow))


def test_timers_around_phases_are_left_out_unless_open() -> None:
    waiting = told_by(
        durations={"train_wait": durations(9.0), "train": durations(8.0)},
        phase=PhaseClock(name="train_wait", since=NOW - 5),
    )
    assert lines(rows(waiting))[0] == "▶ train_wait 0:05 of ~0:09"
    hidden = told_by(durations={"train_wait": durations(9.0)}, phase=None, bar=None)
    assert "train_wait" not in text(rows(hidden))


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_the_bar_of_the_open_phase(width: int) -> None:
    told = line_with(rows(fakes.running(), width), "27/32")
    assert told.startswith("actor_train  █")
    assert told.endswith("░  27/32")


def test_a_bar_that_stands_still_says_for_how_long() -> None:
    assert line_with(rows(fakes.stalled()), "27/32").endswith("27/32  moved 14 min ago")
    done = told_by(bar=Bar(name="actor_train", done=32, total=32, moved_at=NOW - 400))
    assert "moved" not in text(rows(done))


@pytest.mark.parametrize("width", [80, 120, 200])
def test_each_number_has_a_row_with_trend_and_chart(width: int) -> None:
    told = rows(fakes.running(), width)
    reward = line_with(told, "reward")
    assert reward.startswith("reward        0.412  ↑ 0.047 per 10    ▁▁▁")
    assert reward.endswith("█")
    assert line_with(told, "loss").startswith("loss        0.00290  ↓ 0.0025 per 10")
    assert line_with(told, "step time").startswith("step time      2:21  usual 2:18–2:25")
    assert line_with(told, "length").startswith("length          512  max 2 048")
    assert line_with(told, "truncated").startswith("truncated      10 %")
    assert line_with(told, "tokens/s").startswith("tokens/s      3 120")


def test_values_stand_in_one_column() -> None:
    ends = {line.index("  ", 18) for line in lines(rows(fakes.running()))[2:10]}
    assert ends == {19}


def test_what_has_no_row_of_its_own_is_still_said() -> None:
    told = text(rows(fakes.running(), 80, 6))
    for value in ("reward", "loss", "grad norm 0.900", "kl 0.00110", "step time 2:21"):
        assert value in told
    assert lines(rows(fakes.running(), 80, 6))[-1].startswith("eval aime 0.200 at 60")


def test_evaluation_weights_and_learning_rate() -> None:
    assert lines(rows(fakes.running()))[-1] == "eval aime 0.200 at 60   weights v61   lr 1e-6"


def test_a_flat_series_is_steady() -> None:
    flat = Series(points=tuple((float(x), 0.5) for x in range(30)))
    told = told_by(latest={"rollout/raw_reward": 0.5}, series={"rollout/raw_reward": flat})
    assert "→ steady" in line_with(rows(told), "reward")


def test_nan_is_said_marked_and_does_not_blank_its_chart() -> None:
    told = rows(fakes.diverged())
    assert "✖ train/loss is nan since step 58, 7 min ago" in text(told)
    loss, grad = line_with(told, "loss  "), line_with(told, "grad norm")
    assert "✖ nan" in loss
    assert loss.endswith("×××")
    assert loss.count("▁") > 3
    assert "✖ inf" in grad
    assert grad.endswith("↑×××")
    assert roles_of(told, "nan") == {Role.BAD}


def test_a_nan_of_a_rollout_metric_counts_rollouts() -> None:
    bad = NonFinite(key="rollout/raw_reward", number=4, at=NOW - 60, value="inf")
    assert "since rollout 4" in text(rows(told_by(non_finite=bad)))


def test_kl_is_that_to_the_reference_where_there_is_one() -> None:
    latest = {"train/kl_loss": 0.5, "train/ppo_kl": 0.1}
    assert "0.500" in line_with(rows(told_by(latest=latest)), "kl")
    assert "0.100" in line_with(rows(told_by(latest={"train/ppo_kl": 0.1})), "kl")


def test_a_metric_that_was_not_logged_is_not_invented() -> None:
    told = text(rows(told_by(latest={"train/loss": 0.1}, series={})))
    assert "loss" in told
    for absent in ("reward", "kl", "length", "truncated"):
        assert absent not in told


def test_before_the_first_rollout_start_up_is_told() -> None:
    assert lines(rows(fakes.starting())) == [
        "no rollout yet, launched 4 min ago",
        "model of iter 60 loaded",
        "optimizer of iter 60 loaded",
        "0 of 1 engine ready",
        "router at http://192.0.2.2:3912",
        "last sign 20 s ago: engine 0 addressed",
    ]


def test_a_part_that_was_not_loaded_warns() -> None:
    told = fakes.starting().story
    failed = replace(told.loads[0], part="optimizer", result="failed", detail="KeyError")
    shown = rows(fakes.running(story=replace(told, loads=(failed,))))
    assert roles_of(shown, "optimizer of iter 60 failed: KeyError") == {Role.WARNING}


def test_before_anything_was_read() -> None:
    assert lines(rows(Snapshot())) == ["no rollout seen yet"]


def test_the_title_names_the_step_and_the_age_of_progress() -> None:
    assert steps.title(fakes.running(), LOOK) == "Steps · step 60 · 3 s ago"
    assert steps.title(fakes.stalled(), LOOK) == "Steps · step 60 · 14 min ago"
    assert steps.title(Snapshot(), LOOK) == "Steps"


@pytest.mark.parametrize(
    ("width", "told"),
    [
        (79, "Steps   reward 0.412   loss 0.00290   grad norm 0.900   kl 0.00110"),
        (38, "Steps   reward 0.412   loss 0.00290"),
    ],
)
def test_the_answer_in_a_line(width: int, told: str) -> None:
    assert plain(steps.summary(fakes.running(), width, LOOK)) == told


def test_the_answer_in_a_line_when_it_diverged_or_has_not_begun() -> None:
    assert "loss ✖ nan" in plain(steps.summary(fakes.diverged(), 79, LOOK))
    assert plain(steps.summary(fakes.starting(), 79, LOOK)) == "Steps   no rollout yet"


def test_a_step_time_is_usual_only_against_enough_others() -> None:
    few = Series(points=((0.0, 300.0), (1.0, 140.0), (2.0, 141.0)))
    told = told_by(latest={"perf/step_time": 141.0}, series={"perf/step_time": few})
    assert "usual" not in line_with(rows(told), "step time")


def test_infinite_durations_do_not_matter() -> None:
    odd = told_by(durations={"generate": durations(math.inf, math.nan)}, phase=None)
    assert "generate ?" in text(rows(odd))


def test_a_minute_of_a_phase_never_seen_has_no_usual() -> None:
    new = told_by(durations={}, phase=PhaseClock(name="eval", since=NOW - 2 * MIN))
    assert lines(rows(new))[0] == "▶ eval 2:00"
