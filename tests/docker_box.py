"""The Docker engine that `tests/engine` starts, as its tests use it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from box import Box

REPOSITORY = Path(__file__).parents[1]


@dataclass(frozen=True)
class DockerBox:
    """A running engine and an image of nothing, into which this machine's programs are mounted.

    The engine and its containers are in a box of their own. Its socket is in reach from outside
    too, but only a client that is started inside the box is seen there.
    """

    host: str
    box: Box
    image: str = "milepost-test:empty"

    def docker(self, *args: str, check: bool = True) -> str:
        """Run the command-line client; what it printed."""
        ran = subprocess.run(
            ["docker", *args],
            env={**os.environ, "DOCKER_HOST": self.host},
            capture_output=True,
            text=True,
            timeout=120,
        )
        if check and ran.returncode != 0:
            raise AssertionError(f"docker {' '.join(args)}: {ran.stderr}")
        return ran.stdout.strip()

    def run_words(self, *options: str, network: str = "host") -> tuple[str, ...]:
        """`run …` up to and with the image: /tmp empty, this Python inside."""
        own = (f"--network={network}", "--tmpfs=/tmp", *self.mounts)
        return ("run", *own, *options, self.image)

    @property
    def mounts(self) -> tuple[str, ...]:
        """Everything that a Python of this environment needs, read-only and in its own place."""
        needed = {Path(name) for name in ("/usr", "/bin", "/lib", "/lib64", "/etc")}
        needed |= {Path(sys.base_prefix), Path(sys.prefix), REPOSITORY}
        outer = [path for path in needed if path.exists() and not needed & set(path.parents)]
        return tuple(f"--volume={path}:{path}:ro" for path in sorted(outer))
