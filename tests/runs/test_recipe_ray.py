"""A job of a real Ray cluster whose submitter is gone: kept, stopped, and submitted again as it was."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from begun import Stage, staged
from box import DEMO, Box
from ray_cluster import ADDRESS, RAY, opened_cluster

from tui.model.recipe import Recipe, RecipeKind
from tui.runs.recipe_store import kept
from tui.runs.state_dir import runs_folder

pytestmark = pytest.mark.ray

SECRET = "hunter2hunter2"
CARRY_OUT = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from begun import Stage
from tui.actions.executor import Executor
from tui.actions import starting
from tui.model.plan import StartRun
executor = Executor(folder=Path(sys.argv[2]), performers={StartRun: starting.perform})
print(executor.carry_out(sys.argv[3]).line)
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Box]:
    with opened_cluster(tmp_path) as box:
        yield box


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path / "stage") as stage:
        yield stage


def the_recipe() -> Recipe:
    (file,) = runs_folder().glob("*/recipe.json")
    recipe = kept(file.parent)
    assert recipe is not None
    return recipe


def test_a_job_is_submitted_again_as_it_was(cluster: Box, stage: Stage) -> None:
    environment = json.dumps({"env_vars": {"HF_TOKEN": SECRET, "GREETING": "good day"}})
    words = f"{DEMO} --dir {stage.folder}/demo --save {stage.folder}/ckpt".split()
    sent = cluster.run(
        *(RAY, "job", "submit", *ADDRESS, "--no-wait", "--submission-id=one"),
        *("--runtime-env-json", environment, "--metadata-json", '{"owner": "me"}', "--", *words),
    )
    assert sent.returncode == 0, sent.stdout + sent.stderr
    cluster.the_run()
    told = cluster.milepost("status", "--json")
    assert SECRET not in told.stdout + told.stderr

    recipe = the_recipe()
    assert (recipe.kind, recipe.submission_id) == (RecipeKind.JOB, "one")
    assert json.loads(recipe.runtime_env) == json.loads(environment)
    assert dict(recipe.metadata)["owner"] == "me"
    stopped = cluster.run(RAY, "job", "stop", *ADDRESS, "one")
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    cluster.runs_until(lambda runs: not runs)

    plan = stage.plan(recipe, submission_id="one-resume-20261129-181503")
    for line in ("submitted job one-resume-20261129-181503", "has ended already"):
        tests = Path(__file__).parents[1]
        ran = cluster.run(sys.executable, "-c", CARRY_OUT, tests, stage.state, plan.id)
        assert line in ran.stdout + ran.stderr
    run = cluster.the_run()
    assert run["attachment"]["job"]["value"] == "one-resume-20261129-181503"
    pid = run["attachment"]["driver_pid"]["value"]
    inside = cluster.run("cat", f"/proc/{pid}/environ").stdout.split("\0")
    assert {f"HF_TOKEN={SECRET}", "GREETING=good day"} <= set(inside)
