"""Jobs of a real Ray cluster, found end to end with no option at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from box import DEMO, Box
from ray_cluster import ADDRESS, RAY, opened_cluster

from tui.errors import ExitCode

pytestmark = pytest.mark.ray


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Box]:
    with opened_cluster(tmp_path) as box:
        yield box


def test_a_job_with_its_client_then_one_without(cluster: Box, tmp_path: Path) -> None:
    submit = f"{RAY} job submit --address http://127.0.0.1:8265"
    cluster.shell(
        f"{submit} --submission-id one -- DEMO --dir {tmp_path}/a > plain.log 2>&1", tmp_path
    )
    run = cluster.the_run()
    attachment = run["attachment"]
    assert [part.split(",")[0] for part in run["found_by"]] == [
        "ray job submit",
        "driver",
        "Ray job one",
    ]
    assert attachment["log"]["value"] == str(tmp_path / "plain.log")
    assert attachment["log"]["source"].startswith("output of `ray job submit`, process ")
    assert attachment["job"]["value"] == "one"
    assert cluster.status("one")["snapshot"]["attachment"]["log"] == attachment["log"]

    stopped = cluster.run(RAY, "job", "stop", *ADDRESS, "one")
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    assert cluster.runs_until(lambda runs: not runs) == []
    told = cluster.milepost("status")
    assert told.returncode == ExitCode.NOTHING_FOUND
    assert "its newest is STOPPED: see it with `milepost one`" in told.stderr
    assert "driver log of Ray job one" in cluster.milepost("status", "--json", "one").stdout

    words = f"{DEMO} --dir {tmp_path}/b".split()
    sent = cluster.run(
        RAY, "job", "submit", *ADDRESS, "--no-wait", "--submission-id=two", "--", *words
    )
    assert sent.returncode == 0, sent.stdout + sent.stderr
    run = cluster.the_run()
    attachment = run["attachment"]
    assert [part.split(",")[0] for part in run["found_by"]] == ["driver", "Ray job two"]
    assert Path(attachment["log"]["value"]).name == "job-driver-two.log"
    assert attachment["name"] == "two"
    assert cluster.status()["summary"]["rollout"] is not None
