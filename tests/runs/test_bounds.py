"""Limits, umask and priorities of a process are read, and given to what is started in its place."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tui.actions import preflight, spawn
from tui.model.recipe import Bounds, Recipe, RecipeKind
from tui.runs.bounds import bounds_of

BOUNDS = Bounds(
    limits=(("NOFILE", 4096, 8192), ("MEMLOCK", -1, -1)), umask=0o22, nice=0, oom_score_adj=0
)


def recipe(**changes: object) -> Recipe:
    fields = {"kind": RecipeKind.PROCESS, "source": "a test", "captured_at": 0.0, "bounds": BOUNDS}
    return Recipe(**{**fields, **changes})  # type: ignore[arg-type]


def test_what_a_shell_set_is_read() -> None:
    shell = "umask 027; ulimit -S -n 300; ulimit -c 0; echo 17 > /proc/self/oom_score_adj"
    command = f"{shell}; echo; exec nice -n 5 cat"
    with subprocess.Popen(
        ["bash", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while Path(f"/proc/{process.pid}/comm").read_text() != "cat\n":
            pass
        bounds = bounds_of(process.pid)
        process.communicate()

    assert bounds is not None
    assert (bounds.umask, bounds.nice, bounds.oom_score_adj) == (0o27, 5, 17)
    assert bounds.soft("NOFILE") == 300
    assert bounds.soft("CORE") == 0
    assert bounds.soft("STACK") == resource.getrlimit(resource.RLIMIT_STACK)[0]
    assert bounds.soft("NOTHING") is None


def test_a_process_that_is_gone_has_none() -> None:
    with subprocess.Popen(["true"]) as process:
        pass

    assert bounds_of(process.pid) is None


@pytest.mark.parametrize(
    ("wanted", "got"),
    [
        ((512, 1024), (512, 1024)),
        ((512, 4096), (512, 1024)),
        ((2048, 4096), (1024, 1024)),
        ((-1, -1), (1024, 1024)),
    ],
)
def test_a_limit_that_cannot_be_as_high_is_as_high_as_it_can_be(
    wanted: tuple[int, int], got: tuple[int, int]
) -> None:
    program = (
        "import os, resource, runpy, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1024))\n"
        "limit = runpy.run_path(sys.argv[1])['_limit']\n"
        "os.geteuid() or os.setuid(65534)\n"
        f"limit(resource.RLIMIT_NOFILE, *{wanted})\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE))\n"
    )
    words = [sys.executable, "-I", "-S", "-c", program, spawn.__file__]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)

    assert ran.stdout == f"{got}\n"


def test_what_a_start_gets_less_of_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(preflight, "limits_of", lambda _, name: (512, 1024))

    assert [row.text for row in preflight.limits(recipe())] == [
        "open files: 1,024 at most here, 4,096 for the run before",
        "bytes of locked memory: 1,024 at most here, no limit for the run before",
    ]
    assert list(preflight.limits(recipe(is_client=True))) == []
    assert list(preflight.limits(recipe(bounds=None))) == []


def test_enough_is_not_spoken_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(preflight, "limits_of", lambda *_: (512, -1))

    assert list(preflight.limits(recipe())) == []
