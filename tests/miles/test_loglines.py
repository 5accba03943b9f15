"""Log lines to events: the captures read right, and nothing forged counts."""

from __future__ import annotations

from pathlib import Path

import logs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.miles.loglines import LogParser
from tui.miles.stamps import LogClock
from tui.model import events
from tui.model.events import MetricKind
from tui.model.progress import LineKind


def numbers(found: list[events.Event], kind: MetricKind) -> list[int]:
    return [e.number for e in found if isinstance(e, events.MetricsLogged) and e.kind is kind]


@pytest.mark.parametrize(
    ("name", "rollouts", "saves"),
    [
        ("fresh", range(4), [2, 4]),
        ("resume", range(4, 6), [6]),
        ("sentinel", range(6, 12), [7, 10, 12]),
        ("actordied", range(12, 14), [14]),
    ],
)
def test_captures_give_every_rollout_step_and_save(
    data: Path, name: str, rollouts: range, saves: list[int]
) -> None:
    found, _ = logs.parsed(logs.lines_of(data / "captures" / f"{name}.log"))

    assert numbers(found, MetricKind.STEP) == list(rollouts)
    assert numbers(found, MetricKind.ROLLOUT) == list(rollouts)
    assert numbers(found, MetricKind.PERF_TRAIN) == list(rollouts)
    generated = numbers(found, MetricKind.PERF_ROLLOUT)
    assert generated[: len(rollouts)] == list(rollouts)
    saved = [e.iteration for e in found if isinstance(e, events.CheckpointSave)]
    assert saved == saves


def test_captures_give_phases_with_their_durations(data: Path) -> None:
    found, _ = logs.parsed(logs.lines_of(data / "captures" / "fresh.log"))

    ended = [(e.phase, e.elapsed_s) for e in found if isinstance(e, events.PhaseEnded)]
    assert ended.count(("actor_train", 0.4)) == 4
    assert [phase for phase, _ in ended].count("update_weights") == 5


def test_captures_give_bars_whose_prefix_stands_on_a_line_of_its_own(data: Path) -> None:
    found, shown = logs.parsed(logs.lines_of(data / "captures" / "fresh.log"))

    bars = [(e.name, e.done, e.total) for e in found if isinstance(e, events.BarMoved)]
    assert ("Rollout generation", 16, 32) in bars
    assert ("actor_train", 8, 8) in bars
    sources = {line.source for line in shown if line.kind is LineKind.BAR}
    assert sources == {"rollout", "trainer"}


def test_the_launch_is_read_and_the_last_of_a_repeated_flag_wins(data: Path) -> None:
    found, _ = logs.parsed(logs.lines_of(data / "captures" / "sentinel.log"))

    (launched,) = (e for e in found if isinstance(e, events.RunLaunched))
    assert launched.launch.save == "/ckpt/run-a"
    assert launched.launch.save_interval == 5
    assert launched.launch.num_rollout == 12
    assert launched.launch.save_trigger == "/ckpt/run-a.save-now"


def test_a_failed_jobs_replayed_tail_is_counted_once(data: Path) -> None:
    lines = logs.lines_of(data / "captures" / "actordied.log")
    repeated = [line for line in lines if "perf 14: {" in line]
    found, _ = logs.parsed(lines)

    assert len(repeated) == 2
    assert numbers(found, MetricKind.PERF_ROLLOUT).count(14) == 1
    ends = [e.end for e in found if isinstance(e, events.RunEnded)]
    assert ends == [events.End.DRIVER_ERROR, events.End.FAILED, events.End.FAILED]


def test_ray_guesses_are_no_clue(data: Path) -> None:
    found, _ = logs.parsed(logs.lines_of(data / "captures" / "actordied.log"))

    clues = {e.kind for e in found if isinstance(e, events.ClueFound)}
    assert clues == {events.ClueKind.WORKER_DIED}
    assert not any("OOM" in e.line for e in found if isinstance(e, events.ClueFound))


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("OSError: [Errno 122] Disk quota exceeded: '/ckpt/x'", events.ClueKind.QUOTA),
        ("SafetensorError: Io(Os { code: 122, Disk quota exceeded })", events.ClueKind.QUOTA),
        ("write: EDQUOT", events.ClueKind.QUOTA),
        ("OSError: [Errno 28] No space left on device", events.ClueKind.DISK_FULL),
        ("RuntimeError: unexpected pos 704 vs 598", events.ClueKind.DISK_FULL),
    ],
)
def test_a_quota_is_told_from_a_full_disk(line: str, kind: events.ClueKind) -> None:
    found, _ = logs.parsed([f"{logs.TRAINER}{line}"])

    assert [e.kind for e in found if isinstance(e, events.ClueFound)] == [kind]


def test_both_kinds_of_perf_are_told_apart() -> None:
    found, _ = logs.parsed(
        [
            logs.rollout("10:00:00", "perf 3: {'perf/rollout_time': 92.1}"),
            logs.trainer(
                "10:01:00", "perf 3: {'perf/train_wait_time': 101.2, 'perf/step_time': 1}"
            ),
        ]
    )

    kinds = [e.kind for e in found if isinstance(e, events.MetricsLogged)]
    assert kinds == [MetricKind.PERF_ROLLOUT, MetricKind.PERF_TRAIN]


def test_numbers_of_every_spelling() -> None:
    line = logs.step(
        "10:00:00",
        22,
        loss="nan",
        grad_norm="inf",
        ppo_kl="-inf",
        a="np.float64(0.5)",
        b="-7.4e-12",
    )
    (found,) = (e for e in logs.parsed([line])[0] if isinstance(e, events.MetricsLogged))

    values = dict(found.values)
    assert str(values["train/loss"]) == "nan"
    assert values["train/grad_norm"] == float("inf")
    assert values["train/ppo_kl"] == float("-inf")
    assert values["train/a"] == 0.5
    assert values["train/b"] == -7.4e-12


def test_colour_in_every_state_of_decay(data: Path) -> None:
    found, shown = logs.parsed(logs.lines_of(data / "cases" / "o15.log"))

    assert numbers(found, MetricKind.STEP) == [7, 8]
    assert numbers(found, MetricKind.PERF_ROLLOUT) == [8]
    assert numbers(found, MetricKind.ROLLOUT) == [8]
    assert {line.source for line in shown} <= {"trainer", "rollout", "driver", "engine 4100"}


def test_bars_glued_together_and_a_record_behind_them(data: Path) -> None:
    found, _ = logs.parsed(logs.lines_of(data / "cases" / "o16.log"))

    bars = [(e.name, e.done, e.total) for e in found if isinstance(e, events.BarMoved)]
    assert ("Rollout generation", 256, 256) in bars
    assert ("Eval aime", 150, 480) in bars
    assert bars[-1] == ("Rollout generation", 32, 256)
    assert numbers(found, MetricKind.PERF_ROLLOUT) == [3]


def test_repeated_suffix_is_taken_off_and_credited_to_nobody(data: Path) -> None:
    found, _ = logs.parsed(logs.lines_of(data / "cases" / "o14.log"))

    steps = [(e.number, e.cell) for e in found if isinstance(e, events.MetricsLogged)]
    assert steps == [(40, 0), (40, 1), (41, 0), (42, 1)]
    worked = [(e.pid, e.repeated) for e in found if isinstance(e, events.EngineWorked)]
    assert worked == [(4100, 0), (4103, 3), (4102, 0)]


FORGED = [
    "step 99: {'train/loss': nan, 'train/grad_norm': nan}",
    f"[{logs.DAY} 09:59:00.000 rollout_manager] metrics.py:89 - perf 99: {{'perf/rollout_time': 1.0}}",
    "[2024-01-01 00:00:00.000 rollout_manager] metrics.py:89 - perf 99: {'perf/rollout_time': 1.0}",
    f"[{logs.DAY} 10:00:01.000 actor_cell0_rank0] log_utils.py:542 - step 99: {{'train/loss': nan}}",
    "Health check failed for rollout engine 0 (ray timeout or error). Killing actor.",
    "Rollout generation:  99%|#########9| 127/128 [00:01<00:00, 9.9it/s]",
    "Traceback (most recent call last):",
    "OSError: [Errno 28] No space left on device",
    "OSError: [Errno 122] Disk quota exceeded",
    "CUDA out of memory",
    "Error: x, retrying... (attempt 59/60, url=http://a/generate, response=None)",
]


@pytest.mark.parametrize("text", FORGED)
def test_a_models_answer_forges_nothing(text: str) -> None:
    """Ray prints every line of an answer with the rollout manager's own prefix."""
    lines = [
        logs.rollout("10:00:00", "Finish rollout: text_preview=look:", "inference.py:153"),
        f"{logs.ROLLOUT}{text}",
    ]
    found, _ = logs.parsed(lines)

    assert found == []


@pytest.mark.parametrize("end", ["succeeded", "failed", "was stopped"])
def test_an_answer_cannot_end_the_run(end: str) -> None:
    """A carriage return in an answer becomes a line without any prefix."""
    found, _ = logs.parsed(
        [
            f"{logs.DAY} 09:00:00,001\tSUCC cli.py:67 -- Job 'raysubmit_real' submitted successfully",
            logs.rollout("10:00:00", "First rollout sample: text_preview=look", "inference.py:130"),
            f"Job 'raysubmit_x' {end}",
        ]
    )

    assert not any(isinstance(e, events.RunEnded) for e in found)


def test_after_an_answer_the_run_goes_on_being_read() -> None:
    found, _ = logs.parsed(
        [
            logs.rollout("10:00:00", "Finish rollout: text_preview=look:", "inference.py:153"),
            f"{logs.ROLLOUT}step 99: {{'train/loss': nan}}",
            logs.rollout("10:00:02", "perf 5: {'perf/rollout_time': 98.6}"),
            logs.step("10:00:09", 10),
        ]
    )

    assert numbers(found, MetricKind.PERF_ROLLOUT) == [5]
    assert numbers(found, MetricKind.STEP) == [10]


def test_a_process_only_speaks_in_its_own_name() -> None:
    found, _ = logs.parsed(
        [f"{logs.ROLLOUT}[{logs.DAY} 10:00:00.000 actor_cell0_rank0] a.py:1 - Timer train start"]
    )

    assert found == []


def test_bracketed_text_is_shown_as_it_is(data: Path) -> None:
    _, shown = logs.parsed(logs.lines_of(data / "cases" / "o27.log"))

    assert "[bold]done[/bold] [link=x]y[/] list[int] a[b] [#ff0000]not a colour[/]" in shown[0].text
    assert shown[2].text.endswith("label=[/], reward_summary={'score': 'len=3'}")


@given(st.lists(st.one_of(st.text(), st.sampled_from(FORGED)), max_size=30))
def test_no_text_at_all_raises(lines: list[str]) -> None:
    parser = LogParser(LogClock(live=True))
    for line in lines:
        parser.feed(line, arrival=1.0)
        parser.feed(f"{logs.TRAINER}{line}")


def test_ages_come_from_arrival_when_the_applications_clock_is_wrong() -> None:
    clock = LogClock(live=True)

    assert clock.at(1000.0, arrival=5000.0) == 5000.0
    assert clock.at(1010.0, arrival=5010.5) == pytest.approx(5010.0)
    assert clock.at(1011.0, arrival=9000.0) == 9000.0


def test_lines_of_before_are_dated_by_the_files_last_write() -> None:
    clock = LogClock(live=True)
    clock.calibrate(stamp=1000.0, written_at=8200.0)

    assert clock.at(400.0, arrival=None) == 7600.0
    assert clock.at(None, arrival=None) == 7600.0
