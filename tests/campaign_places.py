"""Where the runs of the kill campaign live: each in a box, and with files of milepost's, of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from box import opened_box
from campaign_watch import ENVIRONMENT
from docker_box import opened_engine
from dying import Fate
from places import (
    BareProcess,
    DetachedContainer,
    InContainer,
    Place,
    RayClient,
    RayJob,
    RemovedContainer,
)
from ray_cluster import opened_cluster

KILLS = (Fate.ACTION, Fate.FOLLOWER, Fate.BOTH, Fate.TWICE, Fate.GIVEN_UP, Fate.RUN)
RESTARTS = (Fate.ENGINE, Fate.CRASH)
FATES: Mapping[str, tuple[Fate, ...]] = {
    "process": KILLS,
    "rm": (*KILLS, *RESTARTS),
    "detached": (*KILLS, *RESTARTS),
    "job": KILLS,
    "job-client": KILLS,
}
"""What can happen to a run, by where it lives."""
_IN_DOCKER: Mapping[str, type[InContainer]] = {
    "rm": RemovedContainer,
    "detached": DetachedContainer,
}
_IN_RAY: Mapping[str, type[RayJob]] = {"job": RayJob, "job-client": RayClient}


@contextmanager
def places(backend: str) -> Iterator[Callable[[], Place]]:
    """What makes a new place of this kind."""
    with ExitStack() as stack:
        root = Path(tempfile.mkdtemp(prefix="campaign"))
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        if backend in _IN_DOCKER:
            make = stack.enter_context(_in_docker(root, _IN_DOCKER[backend]))
        elif backend in _IN_RAY:
            make = stack.enter_context(_in_ray(root, _IN_RAY[backend]))
        else:
            make = stack.enter_context(_here(root))
        yield lambda: _at_home(make())


@contextmanager
def _here(root: Path) -> Iterator[Callable[[], Place]]:
    with opened_box() as box:
        yield lambda: BareProcess(box, _folder(root))


@contextmanager
def _in_docker(root: Path, kind: type[InContainer]) -> Iterator[Callable[[], Place]]:
    with opened_engine() as engine:
        os.environ["DOCKER_HOST"] = engine.host

        def make() -> Place:
            engine.remove_all()
            place = kind(engine, _folder(root))
            place.options = (*place.options, "-e", f"{ENVIRONMENT}={place.mark}")
            return place

        yield make


@contextmanager
def _in_ray(root: Path, kind: type[RayJob]) -> Iterator[Callable[[], Place]]:
    """A new cluster for each: Ray keeps the ids of its jobs."""
    with ExitStack() as cluster:

        def make() -> Place:
            cluster.close()
            return kind(cluster.enter_context(opened_cluster(_folder(root))), _folder(root))

        yield make


def _folder(root: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=root))


def _at_home(place: Place) -> Place:
    os.environ["HOME"] = str(place.folder)
    os.environ[ENVIRONMENT] = place.mark
    return place
