"""A Docker engine of the tests' own: private data, a private socket, a network of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from docker_box import DockerBox, opened_engine


@pytest.fixture(scope="session")
def _engine() -> Iterator[DockerBox]:
    with opened_engine() as engine:
        yield engine


@pytest.fixture
def docker_box(_engine: DockerBox, monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerBox]:
    """The engine, named by DOCKER_HOST; its containers are removed after the test."""
    monkeypatch.setenv("DOCKER_HOST", _engine.host)
    yield _engine
    _engine.remove_all()
