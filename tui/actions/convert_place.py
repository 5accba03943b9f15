"""Where a converter can run: in the run's container, in a fresh one like it, or on this host."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui.actions.situation import Situation
from tui.miles.converter import Surroundings
from tui.miles.secrets import is_secret_name
from tui.miles.titles import DEMO_MODULE
from tui.model.launch import Attachment, host_path
from tui.model.plan import Fresh, Mount

_DEMO = ("-u", "-m", "tui.demo.convert")
_CONFIG_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where it would run."""

    around: Surroundings
    words: str
    container_id: str = ""
    fresh: Fresh | None = None
    cwd: str = ""


def place_of(situation: Situation) -> Place:
    """In the run's container while it lives, else in a fresh one like it, else on this host."""
    run = situation.run
    found = run.container if run is not None and not run.is_here else None
    if found is not None and found.container.status == "running":
        return Place(
            around=_around(situation, found.container.mounts),
            words=f"in container {found.container.name}",
            container_id=found.container.id,
        )
    recipe = situation.recipe
    spec = found.spec if found is not None else recipe.container_spec if recipe is not None else ""
    is_here = run is not None and run.is_here
    fresh = _fresh(spec) if spec and not is_here else None
    if fresh is not None:
        pairs = tuple((mount.host_path, mount.path) for mount in fresh.mounts)
        return Place(
            around=_around(situation, pairs),
            words=f"in a fresh container of image {fresh.image_name}",
            fresh=fresh,
        )
    return Place(
        around=_around(situation, None),
        words="on this host",
        cwd=recipe.cwd if recipe is not None else "",
    )


def _around(situation: Situation, mounts: tuple[tuple[str, str], ...] | None) -> Surroundings:
    def config_of(folder: str) -> Mapping[str, object] | None:
        path = folder if mounts is None else host_path(folder, mounts)
        return _config_at(path) if path is not None else None

    attachment = situation.snapshot.attachment
    is_demo = attachment.demo or DEMO_MODULE in attachment.launch.argv
    python = _python(attachment)
    return Surroundings(
        exists=os.path.lexists,
        config_of=config_of,
        mounts=mounts,
        python=python,
        program=(python, *_DEMO) if is_demo else (),
    )


def _python(attachment: Attachment) -> str:
    """The one that the driver runs by, as the driver was told it."""
    word = next(iter(attachment.launch.argv), sys.executable if attachment.demo else "")
    return word if os.path.basename(word).startswith("python") else "python3"  # noqa: PTH119


def _config_at(folder: str) -> Mapping[str, object] | None:
    with suppress(OSError, ValueError):
        with Path(folder, "config.json").open("rb") as file:
            config = json.loads(file.read(_CONFIG_BYTES))
        return config if isinstance(config, dict) else None
    return None


def _fresh(text: str) -> Fresh | None:
    """A container for one command in the surroundings that `docker inspect` told of."""
    try:
        spec = json.loads(text)
        config = spec["Config"]
        pairs = (entry.partition("=") for entry in config.get("Env") or ())
        return Fresh(
            image=spec["Image"],
            image_name=config["Image"],
            mounts=tuple(_mounts(spec)),
            environment=tuple(
                (name, value) for name, _, value in pairs if not is_secret_name(name)
            ),
            user=config.get("User") or "",
            cwd=config.get("WorkingDir") or "",
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _mounts(spec: Mapping[str, Any]) -> Iterator[Mount]:
    for mount in spec.get("Mounts") or ():
        is_volume = mount["Type"] == "volume"
        if is_volume or mount["Type"] == "bind":
            yield Mount(
                source=mount["Name"] if is_volume else mount["Source"],
                host_path=mount["Source"],
                path=mount["Destination"],
                is_volume=is_volume,
                read_only=not mount["RW"],
            )
