"""Lines of the demo's log against those Miles, Ray and tqdm wrote."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from demo_runs import FinishedRun, literal, plain_run, run_demo

from tui.demo import lines

CAPTURES = ("fresh.log", "resume.log", "sentinel.log", "actordied.log")
METRICS = r"(step|rollout|perf) \d+: "
RECORD = re.compile(rf"^\S+ pid=\S+ \[[^]]*\] \S+ - ({METRICS}|Timer |\[FSDP\] |load metadata)")
OWN_WORDS = re.compile(r"^\S+ \S+\t(SUCC|ERR|INFO) ")
VALUES = (
    (r"(?<=pid=)\d+", "N"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d{3}", "TIME"),
    (r"raysubmit_\w{16}", "JOB"),
    (r"\{'.*\}$", "{METRICS}"),
    (r"Timer \w+", "Timer NAME"),
    (r"elapsed: \d+\.\d", "elapsed: S"),
    (r"(step|rollout|perf) \d+(?=:)", r"\1 N"),
    (r"/\S*/(?=iter_|rollout/|latest)", "ROOT/"),
    (r"iter_\d{7}", "iter_N"),
    (r"state_dict_\d+", "state_dict_N"),
    (r"(\d+\.){3}\d+:\d+", "ADDRESS"),
)


def shape(line: str) -> str:
    for pattern, name in VALUES:
        line = re.sub(pattern, name, line)
    return line


def shapes(log: str) -> set[str]:
    """Of the lines a monitor goes by: the job's, the metrics', timers' and checkpoints'."""
    job_log = log.partition("Status message:")[0].split("\n")
    return {shape(line) for line in job_log if RECORD.match(line) or OWN_WORDS.match(line)}


@pytest.fixture(scope="module")
def every_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[FinishedRun, ...]:
    """A fresh run, the one that resumes it, and one whose trainer dies."""
    fresh = plain_run()
    resumed = run_demo(
        tmp_path_factory.mktemp("resumed"),
        *("--load", str(fresh.checkpoints), "--num-rollout", "5"),
    )
    died = run_demo(tmp_path_factory.mktemp("died"), "--fault", "trainer-dies@0")
    return fresh, resumed, died


def test_the_lines_a_monitor_goes_by_have_the_captured_shapes_and_no_other(
    data: Path, every_run: tuple[FinishedRun, ...]
) -> None:
    captured = set().union(*(shapes((data / "captures" / name).read_text()) for name in CAPTURES))
    ours = set().union(*(shapes(run.log) for run in every_run))

    assert captured - ours == set()
    assert ours - captured == {
        "\x1b[36m(FSDPTrainRayActor pid=N)\x1b[0m [TIME actor_cell0_rank0] checkpoint.py:97 - "
        "[FSDP] No tracker file at ROOT/latest_checkpointed_iteration.txt; skipping load."
    }


def test_every_captured_metric_is_among_the_demos(data: Path) -> None:
    log = (data / "captures/fresh.log").read_text()
    captured = re.findall(r" - (step|rollout|perf) \d+: (\{.*\})$", log, re.MULTILINE)
    assert len(captured) == 16
    ours = {
        kind: [set(metrics) for _, metrics in plain_run().metrics(kind)]
        for kind in ("step", "rollout", "perf")
    }

    for kind, text in captured:
        assert any(set(literal(text)) <= keys for keys in ours[kind]), (kind, text)


def test_a_failed_job_ends_as_the_captured_one(
    data: Path, every_run: tuple[FinishedRun, ...]
) -> None:
    def ending(log: str) -> list[str]:
        """From the driver's traceback on, without frames and numbers."""
        words = log.partition("Traceback (most recent call last):")[2].split("\n")
        kept = [line for line in words if not line.startswith(" ") and "RolloutManager" not in line]
        return [re.sub(r"\b[0-9a-f]{32}\b|\d+", "N", shape(line)) for line in kept]

    captured = ending((data / "captures/actordied.log").read_text())
    ours = ending(every_run[2].log)

    for said in captured:
        if not said.startswith(("Rollout generation", "\tnamespace", "\tip", "202", "TIME")):
            assert said in ours
    assert every_run[2].code == 1


@pytest.mark.parametrize("name", CAPTURES)
def test_bars_are_drawn_as_tqdm_draws_them(data: Path, name: str) -> None:
    log = (data / "captures" / name).read_text()
    drawn = set(re.findall(r"^((\S[\w ]+): .*\| (\d+)/(\d+) \[)", log, re.MULTILINE))
    assert drawn
    for bar, title, done, total in drawn:
        assert lines.bar(title, int(done), int(total), 1.0).startswith(bar)


@pytest.mark.parametrize(
    ("done", "elapsed_s", "clocks"),
    [(0, 0.0, "[00:00<?, ?it/s]"), (1, 4.0, "[00:04<00:28,  4.00s/it]")],
)
def test_a_bars_clocks(done: int, elapsed_s: float, clocks: str) -> None:
    assert lines.bar("log_probs", done, 8, elapsed_s).endswith(clocks)


def test_a_redrawn_bar_is_a_bare_prefix_and_an_unprefixed_line() -> None:
    log = plain_run().log.split("\n")
    starts = [number for number, line in enumerate(log) if line.endswith(" 0/8 [00:00<?, ?it/s]")]

    assert len(starts) == 4 * 2 * 2
    for number in starts:
        assert re.fullmatch(r"\x1b\[36m\(FSDPTrainRayActor pid=\d+\)\x1b\[0m ", log[number - 1])


def test_one_rollout_goes_through_its_phases_in_miles_order() -> None:
    words = (
        "Rollout generation: 100%",
        "Final collected",
        "perf 1: {'rollout/",
        "Timer wake_up start",
        "Timer train_wait end",
        "Timer train start",
        "Timer log_probs start",
        "Timer log_probs end",
        "rollout 1: ",
        "Timer actor_train start",
        "step 2: ",
        "step 3: ",
        "Timer actor_train end",
        "Timer train end",
        "Timer train_wait start",
        "perf 1: {'perf/",
        "[FSDP] Saved checkpoint to",
        "Timer sleep start",
        "Timer update_weights start",
        "Timer update_weights end",
        "Rollout generation:   0%",
    )
    log = plain_run().log
    at = log.index("perf 0: {'perf/")
    for word in words:
        at = log.find(word, at)
        assert at >= 0, word


def test_eval_comes_at_the_start_and_at_its_interval() -> None:
    assert [number for number, _ in plain_run().metrics("eval")] == [0, 2]


def test_the_jobs_entrypoint_can_be_run_again() -> None:
    entry = re.search(
        r"^Running entrypoint for job raysubmit_\w{16}: (.*)$", plain_run().log, re.MULTILINE
    )

    assert entry is not None
    assert entry[1].startswith("python3 /root/miles/train.py --train-backend fsdp ")
    argv = entry[1].split()[2:]
    again = run_demo(plain_run().directory, *argv)
    assert again.code == 0
    assert "Loaded model from" in again.log
