"""What is told to Prometheus: its own parser reads it, by its conventions, and only what is known."""

from __future__ import annotations

import math
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import fakes
import pytest
from fake_box import NOW, gpu, report
from fake_run import story
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tui.errors import MilepostError, UsageError
from tui.guard import export
from tui.guard.box_metrics import BOX
from tui.guard.export import Exporter, listen_address
from tui.guard.metrics import CONTENT_TYPE, exposition
from tui.guard.run_metrics import RUN
from tui.model.guard import GuardState
from tui.model.reading import Absence, Unknown, known
from tui.model.snapshot import Snapshot
from tui.runs.state_dir import run_id

RUN_ID = "run-a-1f0c93ab"
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]
NOT_BASE = {
    "ms",
    "milliseconds",
    "minutes",
    "hours",
    "kb",
    "mb",
    "gib",
    "percent",
    "mhz",
    "kilowatts",
}


def series(text: str) -> Series:
    """As Prometheus reads it; each series once."""
    read: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in read
            read[key] = sample.value
    return read


def told(snapshot: Snapshot, name: str, **labels: str) -> float | None:
    key = (f"milepost_{name}", frozenset({"run": RUN_ID, **labels}.items()))
    return series(exposition(snapshot, RUN_ID)).get(key)


def wait_until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30.0
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def says(file: Path, line: str) -> bool:
    return file.exists() and line in file.read_text()


@pytest.mark.parametrize("snapshot", [s for _, s in fakes.all_snapshots()])
def test_every_state_is_read_and_each_name_is_told_of_once(snapshot: Snapshot) -> None:
    text = exposition(snapshot, RUN_ID)
    assert series(text)
    for kind in ("HELP", "TYPE"):
        names = re.findall(rf"^# {kind} (\S+)", text, re.MULTILINE)
        assert len(names) == len(set(names))
    for line in text.splitlines():
        assert line.startswith("# ") or f'run="{RUN_ID}"' in line
    assert text.endswith("\n")


@pytest.mark.parametrize("metric", [*RUN, *BOX], ids=lambda metric: metric.name)
def test_names_follow_the_conventions(metric: object) -> None:
    name, meaning = getattr(metric, "name", ""), getattr(metric, "meaning", "")
    assert re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]", name)
    assert not set(name.split("_")) & NOT_BASE
    assert "timestamp" not in name or name.endswith("_timestamp_seconds")
    assert meaning.endswith(".")
    assert "\n" not in meaning


def test_no_two_metrics_have_one_name() -> None:
    names = [metric.name for metric in (*RUN, *BOX)]
    assert len(names) == len(set(names))


def test_the_run_is_told() -> None:
    snapshot = fakes.running()
    assert told(snapshot, "run_state", state="running") == 1
    assert told(snapshot, "run_state", state="stalled") == 0
    assert told(snapshot, "run_rollout") == 61
    assert told(snapshot, "run_target_rollouts") == 200
    assert told(snapshot, "run_last_progress_timestamp_seconds") == NOW - 3
    assert told(snapshot, "run_phase_start_timestamp_seconds", phase="actor_train") == NOW - 34
    assert told(snapshot, "work_at_risk_seconds") == 840
    assert told(snapshot, "checkpoints", state="whole") == 2
    assert told(snapshot, "checkpoint_newest_whole_iteration") == 60
    assert told(snapshot, "training_metric", metric="rollout/raw_reward") == 0.412


def test_the_box_and_the_engines_are_told_in_base_units() -> None:
    snapshot = fakes.running()
    assert told(snapshot, "gpu_sm_clock_hertz", device="0") == 2_281_000_000
    assert told(snapshot, "gpu_utilization_ratio", device="0") == pytest.approx(0.96)
    assert told(snapshot, "engine_state", engine="0", state="paused") == 1
    assert told(snapshot, "memory_size_bytes") is not None


def test_what_is_not_known_is_not_there() -> None:
    text = exposition(Snapshot(), RUN_ID)
    for absent in ("rollout", "gpu_", "memory_", "disk_", "work_at_risk", "checkpoints", "engine"):
        assert f"milepost_{absent}" not in text.replace("milepost_run_", "milepost_")
    unified = replace(fakes.running(), gpus=known(report(gpu()), NOW))
    assert told(unified, "gpu_memory_used_bytes", device="0") is None


def test_a_source_that_fell_silent_tells_its_last_no_more() -> None:
    fault = Unknown(why=Absence.TIMED_OUT, reason="no answer for 20 s", at=NOW)
    silent = replace(fakes.running(), missed={"memory": fault, "gpu": fault, "disk": fault})
    text = exposition(silent, RUN_ID)
    assert told(silent, "probe_silent", probe="memory") == 1
    assert "milepost_memory_available_bytes" not in text
    assert "milepost_gpu_power_watts" not in text
    assert "milepost_disk_free_bytes" not in text


def test_numbers_that_are_none_are_prometheus_own_words() -> None:
    snapshot = fakes.diverged()
    assert math.isnan(told(snapshot, "training_metric", metric="train/loss") or 0.0)
    assert told(snapshot, "training_metric", metric="train/grad_norm") == math.inf


def test_the_guard_and_alerts_are_told() -> None:
    assert told(fakes.guarded(), "guard_state", state="on") == 1
    assert told(fakes.guarded(paused="a person"), "guard_paused") == 1
    assert told(fakes.guarded(state=GuardState.DEAD), "guard_state", state="dead") == 1
    assert told(fakes.degraded(), "alerts", code="checkpoint-partial", level="warning") == 1
    assert told(fakes.degraded(), "run_degraded") == 1


@given(st.text(max_size=30), st.floats(), st.text(max_size=10))
def test_whatever_a_log_says_it_stays_readable(name: str, value: float, run: str) -> None:
    key = f"train/{name}"
    odd = story(latest={key: value}, series={key: story().series["train/loss"]})
    text = exposition(fakes.running(story=odd), run)
    assert any(name == "milepost_training_metric" for name, _ in series(text))


class TestTextfile:
    """For node_exporter."""

    def test_it_is_there_whole_readable_by_others_and_gone_at_the_end(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(export, "WRITE_EVERY_S", 0.01)
        file = tmp_path / "milepost.prom"
        exporter = Exporter(textfile=file)
        exporter.start()
        with closing(exporter):
            for rollout in (61, 62):
                snapshot = fakes.running(story=story(rollout=rollout))
                exporter.export(snapshot)
                line = f'milepost_run_rollout{{run="{run_id(snapshot.attachment)}"}} {rollout}\n'
                wait_until(partial(says, file, line))
            assert series(file.read_text())
            assert file.stat().st_mode & 0o777 == 0o644
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_is_not_there_is_said_and_tried_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(export, "WRITE_EVERY_S", 0.01)
        file = tmp_path / "later" / "milepost.prom"
        exporter = Exporter(textfile=file)
        exporter.start()
        with closing(exporter):
            exporter.export(fakes.running())
            wait_until(lambda: "No such file" in exporter.fault)
            file.parent.mkdir()
            wait_until(lambda: file.exists() and not exporter.fault)

    def test_the_draft_is_no_file_that_a_collector_reads(self, tmp_path: Path) -> None:
        """It takes what ends in `.prom`."""
        file = tmp_path / "milepost.prom"
        drafts = []
        original = Path.replace

        def spied(self: Path, target: Path) -> Path:
            drafts.append(self.name)
            return original(self, target)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "replace", spied)
            assert export._replaced(file, "x 1\n") == ""
        assert drafts
        assert not any(name.endswith(".prom") for name in drafts)


class TestListening:
    """For Prometheus itself."""

    def asked(self, exporter: Exporter, path: str = "/metrics") -> tuple[int, str, str]:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://{exporter.address}{path}", timeout=30.0) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read().decode()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.headers["Content-Type"], refusal.read().decode()

    @pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
    def test_it_answers_with_the_newest(self, host: str) -> None:
        exporter = Exporter(listen=(host, 0))
        try:
            exporter.start()
        except MilepostError:
            pytest.skip(f"this machine has no {host}")
        with closing(exporter):
            assert self.asked(exporter)[0] == 503
            exporter.export(fakes.running())
            status, kind, text = self.asked(exporter)
            assert (status, kind) == (200, CONTENT_TYPE)
            assert series(text)
            assert self.asked(exporter, "/")[0] == 404

    def test_a_client_that_says_nothing_holds_nobody(self) -> None:
        exporter = Exporter(listen=("127.0.0.1", 0))
        exporter.start()
        with closing(exporter):
            exporter.export(fakes.running())
            host, _, port = exporter.address.rpartition(":")
            with socket.create_connection((host, int(port))):
                assert self.asked(exporter)[0] == 200

    def test_a_port_that_is_taken_is_refused(self) -> None:
        first = Exporter(listen=("127.0.0.1", 0))
        first.start()
        with closing(first):
            host, _, port = first.address.rpartition(":")
            with pytest.raises(MilepostError, match="Address already in use"):
                Exporter(listen=(host, int(port))).start()

    @pytest.mark.parametrize(
        ("text", "address"),
        [
            ("127.0.0.1:9400", ("127.0.0.1", 9400)),
            ("[::1]:9400", ("::1", 9400)),
            ("localhost:0", ("localhost", 0)),
            ("127.1.2.3:80", ("127.1.2.3", 80)),
        ],
    )
    def test_of_this_machine(self, text: str, address: tuple[str, int]) -> None:
        assert listen_address(text, anywhere=False) == address

    @pytest.mark.parametrize("text", ["0.0.0.0:9400", "[::]:9400", ":9400", "box.example.org:9400"])
    def test_of_others_only_when_it_is_meant(self, text: str) -> None:
        with pytest.raises(UsageError, match="others than this machine"):
            listen_address(text, anywhere=False)
        assert listen_address(text, anywhere=True)[1] == 9400

    @pytest.mark.parametrize("text", ["9400", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", ""])
    def test_what_is_no_address(self, text: str) -> None:
        with pytest.raises(UsageError, match="no address"):
            listen_address(text, anywhere=True)
