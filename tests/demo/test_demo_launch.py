"""The demo as a process: where it writes, how it is stopped, and that nothing outlives it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from demo_runs import command

from tui.demo import launch
from tui.demo.launch import DemoRun

DEADLINE_S = 200.0


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def urls(run: DemoRun) -> tuple[str, str]:
    """Router and first engine, as the log names them."""
    log = run.log.read_text()
    router = re.search(r"Router launched at (\S+)", log)
    engine = re.search(r"Ports for engine 0: \{'host': '([\d.]+)', 'port': (\d+)", log)
    assert router is not None
    assert engine is not None
    return f"http://{router[1]}", f"http://{engine[1]}:{engine[2]}"


def answer(url: str) -> tuple[int, str]:
    with urllib.request.urlopen(url, timeout=20) as reply:
        return reply.status, reply.read().decode()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[DemoRun]:
    """A run that is in its first rollout."""
    started = launch.start(tmp_path, speed=10, eval_interval=0)
    try:
        wait_until(lambda: "Decode batch" in started.log.read_text(), "the first rollout generates")
        yield started
    finally:
        started.stop()


def test_it_writes_where_it_says(run: DemoRun, tmp_path: Path) -> None:
    assert run.log == tmp_path / "runs/plain.log"
    assert run.save_trigger == tmp_path / "save-now"
    assert f"--save {run.checkpoints} --load {run.checkpoints}" in run.log.read_text()
    assert run.meminfo.exists()
    assert run.gpu.exists()


def test_a_second_run_has_a_log_of_its_own(run: DemoRun, tmp_path: Path) -> None:
    first = run.log.read_text()
    second = launch.start(tmp_path, speed=10)
    try:
        assert second.log == tmp_path / "runs/plain-2.log"
        assert run.log.read_text().startswith(first)
    finally:
        second.stop()


def test_it_leads_a_session_of_its_own(run: DemoRun) -> None:
    assert os.getsid(run.pid) == run.pid


def test_sigterm_ends_it_and_every_process_it_started(run: DemoRun) -> None:
    started = children(run.pid)
    assert len(started) == 2
    router, engine = urls(run)

    assert run.stop() == -signal.SIGTERM

    wait_until(lambda: not any(map(alive, started)), "children end")
    for url in (f"{router}/workers", f"{engine}/health"):
        with pytest.raises(urllib.error.URLError):
            answer(url)
    assert "' succeeded\x1b[39m" not in run.log.read_text()
    assert run.stop() == -signal.SIGTERM


def test_sigkill_leaves_no_orphan(run: DemoRun) -> None:
    started = children(run.pid)

    run.process.kill()
    run.process.wait()

    wait_until(lambda: not any(map(alive, started)), "children end")


def test_a_run_that_does_not_listen_is_ended_all_the_same(run: DemoRun) -> None:
    started = children(run.pid)
    for pid in (run.pid, *started):
        os.kill(pid, signal.SIGSTOP)

    assert run.stop(grace_s=0.2) == -signal.SIGKILL
    wait_until(lambda: not any(map(alive, started)), "children end")


def test_on_its_leash_it_ends_with_whoever_started_it(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys, tui.demo.launch as launch\n"
        "run = launch.start(pathlib.Path(sys.argv[1]), speed=10)\n"
        "print(run.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        assert alive(pid)
        starter.kill()

    wait_until(lambda: not alive(pid), "the run ends")


def test_a_leash_without_a_pipe_holds_nothing(tmp_path: Path) -> None:
    """A resume starts the same command with no stdin; it must not end at once."""
    done = subprocess.run(
        command(tmp_path, "--leash", "--num-rollout", "1", "--eval-interval", "0", speed=600),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=300,
    )

    assert done.returncode == 0


def test_an_engine_answers_in_sglangs_words(run: DemoRun, data: Path) -> None:
    _, engine = urls(run)
    captured = (data / "captures/sglang-metrics.txt").read_text()

    status, text = answer(f"{engine}/metrics")

    assert status == 200
    families = re.findall(r"^# TYPE (sglang:\S+) (\w+)$", text, re.MULTILINE)
    assert families == re.findall(r"^# TYPE (sglang:\S+) (\w+)$", captured, re.MULTILINE)
    assert _samples(captured) <= _samples(text)
    for line in text.splitlines():
        assert re.fullmatch(r'# TYPE \S+ \w+|[\w:]+(\{(\w+="[^"]*",?)+\})? (NaN|[\d.e+]+)', line)
    assert answer(f"{engine}/health") == (200, "")
    assert json.loads(answer(f"{engine}/model_info")[1])["weight_version"] == "1"


def _samples(text: str) -> set[str]:
    """Name and labels of every sample of the engine."""
    return set(re.findall(r"^(sglang:\S+\{.*\}) \S+$", text, re.MULTILINE))


def test_counters_move_while_it_generates_and_rest_while_it_trains(run: DemoRun) -> None:
    _, engine = urls(run)

    def tokens() -> float:
        found = re.search(r"^sglang:realtime_tokens_total\{.*\} (\S+)$", _metrics(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    def _metrics() -> str:
        return answer(f"{engine}/metrics")[1]

    before = tokens()
    wait_until(lambda: tokens() > before, "tokens move")
    wait_until(lambda: "Timer actor_train start" in run.log.read_text(), "it trains")
    text = _metrics()
    for name in (
        "num_requests_total",
        "prompt_tokens_total",
        "generation_tokens_total",
        "num_aborted_requests_total",
    ):
        assert re.search(rf"^sglang:{name}\{{.*\}} \d", text, re.MULTILINE), name
    at_rest = tokens()
    wait_until(lambda: "Timer actor_train end" in run.log.read_text(), "it has trained")
    assert tokens() == at_rest


def test_each_hit_is_a_line_in_the_runs_log(run: DemoRun) -> None:
    _, engine = urls(run)
    answer(f"{engine}/health")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        answer(f"{engine}/nothing")

    hit = r"\(SGLangEngine pid=\d+\)\x1b\[0m \[[\d :-]+\] INFO:     127\.0\.0\.1:\d+ - "
    wait_until(lambda: "GET /nothing" in run.log.read_text(), "the hits are logged")
    assert re.search(hit + r'"GET /health HTTP/1\.1" 200 OK$', run.log.read_text(), re.MULTILINE)
    assert re.search(hit + r'"GET /nothing HTTP/1\.1" 404 Not F', run.log.read_text())


def test_the_router_lists_its_workers_as_sglangs_does(run: DemoRun, data: Path) -> None:
    router, engine = urls(run)
    captured = json.loads((data / "captures/router-workers.json").read_text())

    listed = json.loads(answer(f"{router}/workers")[1])

    assert listed.keys() == captured.keys()
    assert listed["workers"][0].keys() == captured["workers"][0].keys()
    assert [worker["url"] for worker in listed["workers"]] == [engine]
    assert listed["stats"] == {"prefill_count": 0, "decode_count": 0, "regular_count": 1}


def test_ports_are_taken_as_asked(tmp_path: Path) -> None:
    """A port in use fails the job; the demo does not look for another."""
    holder = launch.start(tmp_path / "holder", speed=10, eval_interval=0)
    try:
        wait_until(lambda: "Ports for engine 0" in holder.log.read_text(), "it serves")
        port = urls(holder)[1].rpartition(":")[2]
        done = subprocess.run(
            command(tmp_path / "late", "--engine-ports", port, speed=600),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    finally:
        holder.stop()

    assert done.returncode == 1
    assert "' failed\x1b[39m" in done.stdout
