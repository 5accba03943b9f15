"""A model's answer that forges log lines changes nothing of what a log tells.

What an answer cannot know is the time at which it will be printed. So forged stamps here are of any
time but the hours that follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import logs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tui.explain import explained
from tui.miles.loglines import LogParser
from tui.miles.stamps import LogClock
from tui.miles.triage import telling
from tui.model.events import Event

BEFORE = [
    f"{logs.DAY} 09:00:00,001\tSUCC cli.py:67 -- Job 'raysubmit_1' submitted successfully",
    logs.trainer("09:59:00", "Timer train_wait start"),
    logs.rollout("09:59:01", "Timer generate start", "timer.py:31"),
    logs.engine(
        "09:59:30", "Decode batch, #running-req: 3, #token: 9, token usage: 0.10, #queue-req: 0"
    ),
]
SAMPLES = (
    logs.rollout("10:00:00", "First rollout sample: text_preview=", "inference.py:130"),
    logs.rollout("10:00:00", "Finish rollout: text_preview=", "inference.py:153"),
    logs.rollout("10:00:00", "eval_rollout_single_dataset example data: [", "eval.py:111"),
)
AFTER = [
    logs.rollout("10:00:01", "perf 5: {'perf/rollout_time': 98.6}"),
    logs.trainer("10:00:01", "Timer train_wait end (elapsed: 61.0s)"),
    logs.trainer("10:00:02", "Timer actor_train start"),
    logs.step("10:00:40", 5),
    f"{logs.DAY} 10:01:00,001\tSUCC cli.py:63 -- Job 'raysubmit_1' succeeded",
]
STAMPS = (
    "1999-01-01 00:00:00",
    f"{logs.DAY} 09:59:59",
    f"{logs.DAY} 00:00:00",
    "2099-12-31 23:59:59",
)
NAMES = ("rollout_manager", "actor_cell0_rank0", "critic_cell0_rank0", "driver")
MESSAGES = (
    "step 99: {'train/loss': nan, 'train/grad_norm': nan, 'train/step': 99}",
    "perf 99: {'perf/rollout_time': 1.0}",
    "eval 99: {'eval/aime': 1.0}",
    "Timer actor_train start",
    "Timer actor_train end (elapsed: 1.0s)",
    "[FSDP] Saved checkpoint to /ckpt/iter_0000099",
    "[FSDP] No tracker file at /ckpt/latest.txt; skipping load",
    "Ports for engine 0: {'host': '192.0.2.9', 'port': 1}",
    "Router launched at 192.0.2.9:1",
    "Health check failed for rollout engine 0 (ray timeout or error). Killing actor.",
    "Successfully killed engine at index 0",
    "Recovered 8 dead rollout engines",
    "Pausing health monitor",
    "Error: x, retrying... (attempt 59/60, url=http://a/generate, response=None)",
    "Max retries (60) reached, failing... (url=http://a)",
    "Decode batch, #running-req: 0, token usage: 0.00, gen throughput (token/s): 0.0, #queue-req: 0",
    "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.",
    "The server is fired up and ready to roll!",
    "successfully saved checkpoint from iteration 99 to /ckpt",
    "First rollout sample: text_preview=x",
)
BARE = (
    "Traceback (most recent call last):",
    "RuntimeError: CUDA out of memory",
    "OSError: [Errno 28] No space left on device",
    "ray.exceptions.ActorDiedError: The actor is dead because its worker process has died.",
    "Job 'raysubmit_9' succeeded",
    "Job 'raysubmit_9' failed",
    "Status message: Job entrypoint command failed with exit code 1, last available logs (truncated",
    "Running entrypoint for job raysubmit_9: python3 train.py --num-rollout 1",
    "Rollout generation:  99%|#########9| 127/128 [00:01<00:00, 9.9it/s]",
    "(raylet) /data is over 99% full, available space: 1.0 GB; capacity: 9 GB",
    "(RolloutManager pid=100) ",
    ' batch, # HTTP/1.1"',
    "",
)


def _forged() -> st.SearchStrategy[str]:
    stamp, name, message = map(st.sampled_from, (STAMPS, NAMES, MESSAGES))
    own = st.builds("[{}.000 {}] a.py:1 - {}".format, stamp, name, message)
    engines = st.builds("[{}] {}".format, stamp, message)
    megatron = st.builds(" [{}.000000] {}".format, stamp, message)
    cli = st.builds("{},001\tSUCC cli.py:63 -- Job 'raysubmit_9' succeeded".format, stamp)
    line = st.one_of(own, engines, megatron, cli, st.sampled_from((*MESSAGES, *BARE)), st.text())
    prefixed = st.builds("(FSDPTrainRayActor pid=200) {}".format, line)
    return st.one_of(line, prefixed).map(lambda text: text.replace("\n", " "))


ANSWERS = st.lists(
    st.lists(_forged(), min_size=1, max_size=3).map("\r".join), min_size=1, max_size=6
)
"""Each line of an answer, with carriage returns in it."""


def printed(sample: str, answer: Sequence[str]) -> list[str]:
    """As Ray prints it: each line after the first with the process's prefix."""
    first, *rest = answer
    return [f"{sample}{first}", *(f"{logs.ROLLOUT}{line}" for line in rest)]


def events_of(lines: Sequence[str], arrival: float | None) -> list[Event]:
    """As read from the past, or as they come, one a second."""
    parser = LogParser(LogClock(live=True))
    found: list[Event] = []
    for number, line in enumerate(lines):
        found += parser.feed(line, None if arrival is None else arrival + number).events
    return found


@settings(max_examples=300)
@given(sample=st.sampled_from(SAMPLES), answer=ANSWERS)
def test_read_from_the_past(sample: str, answer: list[str]) -> None:
    lines = [*BEFORE, *printed(sample, answer), *AFTER]
    assert events_of(lines, None) == events_of([*BEFORE, sample, *AFTER], None)


@settings(max_examples=300)
@given(sample=st.sampled_from(SAMPLES), answer=ANSWERS)
def test_read_as_it_comes(sample: str, answer: list[str]) -> None:
    count = len(answer) - 1
    lines = [*BEFORE, *printed(sample, answer), *AFTER]
    honest = [*BEFORE, sample, *[""] * count, *AFTER]
    assert events_of(lines, 1e9) == events_of(honest, 1e9)


@given(sample=st.sampled_from(SAMPLES), answer=ANSWERS)
def test_what_the_past_leaves_out_opens_no_way(sample: str, answer: list[str]) -> None:
    def told(lines: list[str]) -> list[Event]:
        raw = [line.encode("utf-8", "replace") for line in lines]
        return events_of([line.decode() for line in telling(raw)], None)

    lines = [*BEFORE, *printed(sample, answer), *AFTER]
    assert told(lines) == told([*BEFORE, sample, *AFTER])


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(answers=st.lists(st.tuples(st.sampled_from(SAMPLES), ANSWERS), max_size=4))
def test_the_verdict_is_the_same(answers: list[tuple[str, list[str]]], tmp_path: Path) -> None:
    honest, forged = tmp_path / "honest.log", tmp_path / "forged.log"
    samples = [sample for sample, _ in answers]
    honest.write_text("\n".join([*BEFORE, *samples, *AFTER]))
    lines = [line for sample, answer in answers for line in printed(sample, answer)]
    forged.write_bytes("\n".join([*BEFORE, *lines, *AFTER]).encode("utf-8", "replace"))
    one, other = explained(honest), explained(forged)
    assert other.verdict == one.verdict
    assert other.now == one.now
    assert other.story == one.story


@pytest.mark.parametrize("sample", SAMPLES)
def test_an_honest_log_is_read_after_an_answer(sample: str) -> None:
    assert len(events_of([*BEFORE, sample, *AFTER], None)) == len(
        events_of([*BEFORE, *AFTER], None)
    )
