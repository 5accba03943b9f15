"""Processes to act on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from families import Families


@pytest.fixture
def families() -> Iterator[Families]:
    """Starts processes; all of them end with the test."""
    made = Families()
    yield made
    made.end()
