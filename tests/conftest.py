"""Every test starts from a clean home and environment, with no Docker and no GPU in reach."""

from __future__ import annotations

import pathlib

import docker  # noqa: F401  requests sets a filter of warnings as it is imported: not in a thread of a test
import pytest

DATA = pathlib.Path(__file__).parent / "data"


@pytest.fixture(autouse=True)
def _clean_environment(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "NO_COLOR", "DOCKER_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")


@pytest.fixture
def data() -> pathlib.Path:
    """Captured inputs."""
    return DATA
