"""The house stands: what is headless stays headless, and nothing grows without end."""

from __future__ import annotations

import ast
import pathlib
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from tui.config import GUARD_LIMITS, LIMITS, load_config
from tui.guard.limits import Bounds

ROOT = pathlib.Path(__file__).parents[1]
SOURCES = sorted((ROOT / "tui").rglob("*.py"))
FILE_LINES, FUNCTION_LINES = 400, 50
"""Ceilings; usual is a hundred and fifty, and twenty-five."""

HEADLESS = (
    "tui.monitor",
    "tui.attach",
    "tui.explain",
    "tui.view.report",
    "tui.demo.launch",
    "tui.guard.post_mortem",
    "tui.guard.recorder",
    "tui.guard.loop",
    "tui.guard.notify",
    "tui.cli.commands",
)


@pytest.mark.parametrize("module", HEADLESS)
def test_headless_modules_bring_no_screen_and_no_heavy_library(module: str) -> None:
    """In a fresh interpreter: the linter only sees imports at the top of a file."""
    told = subprocess.run(
        [sys.executable, "-c", f"import sys, {module}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout.split()
    heavy = {"textual", "docker", "requests", "urllib3", "pynvml"} & set(told)

    assert not heavy
    assert "rich" not in told


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_and_no_function_outgrows_its_ceiling(path: pathlib.Path) -> None:
    text = path.read_text(encoding="utf-8")
    long = [
        f"{node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    ]

    assert not long
    assert len(text.splitlines()) <= FILE_LINES


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_says_what_is_in_it(path: pathlib.Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_the_readme_shows_every_setting_with_its_default(tmp_path: pathlib.Path) -> None:
    told = (ROOT / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", told, re.DOTALL)
    file = tmp_path / "config.toml"
    file.write_text(example)
    shown, default = load_config(file), load_config()
    between_s = default.limits.failure_interval_s

    assert not [key for key in LIMITS if f"\n{key} = " not in example]
    assert replace(shown.limits, failure_interval_s=between_s) == default.limits
    assert not [key for key in GUARD_LIMITS if f"\n{key} = " not in example]
    assert Bounds(**shown.guard.limits) == Bounds()
    assert replace(shown.guard, limits={}) == default.guard
    for name in ("ascii", "mouse", "interval_s", "read_only"):
        assert f"\n{name} = " in example
        assert getattr(shown, name) == getattr(default, name)


def test_the_readme_lists_every_alert() -> None:
    """Codes are stable, and a person looks them up there."""
    told = (ROOT / "README.md").read_text(encoding="utf-8")
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "tui/model/judge").glob("*.py"))
    missing = [code for code in re.findall(r'code="([a-z-]+)"', sources) if f"`{code}`" not in told]

    assert not missing
