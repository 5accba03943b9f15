"""Compiles the fake NVML library; `python tests/nvml/build.py FOLDER` does it by hand.

A program sees it with `LD_LIBRARY_PATH=FOLDER` and `FAKE_NVML=FILE`; the C file says what to write.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).with_name("fake_nvml.c")
SONAME = "libnvidia-ml.so.1"


def compiler() -> str | None:
    """Where gcc is, None without one."""
    return shutil.which("gcc")


def build(folder: pathlib.Path) -> pathlib.Path:
    """The library, compiled into `folder`."""
    library = folder / SONAME
    flags = ["-shared", "-fPIC", "-O1", "-Wall", f"-Wl,-soname,{SONAME}"]
    subprocess.run(
        [compiler() or "gcc", *flags, "-o", str(library), str(SOURCE)],
        check=True,
        capture_output=True,
        text=True,
    )
    return library


if __name__ == "__main__":
    print(build(pathlib.Path(sys.argv[1])))
