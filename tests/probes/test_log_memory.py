"""A log of 200 MB of junk is read in bounded memory, whatever the junk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SIZE = 200 << 20
LIMIT_MIB = 60
CHILD = """
import re, sys, time
from pathlib import Path
from tui.explain import explained
from tui.model.launch import Attachment, Found
from tui.model.reduce import reduced
from tui.model.snapshot import Snapshot
from tui.probes.log_tail import LogProbe

def peak_mib():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

log, way = sys.argv[1:]
before = peak_mib()
if way == "explain":
    explained(Path(log))
else:
    found = Attachment(log=Found(value=log, source="test"))
    probe, snapshot, end = LogProbe(), Snapshot(attachment=found), time.monotonic() + 120
    while snapshot.log.history_ratio < 1.0 or not snapshot.log.read_at:
        assert time.monotonic() < end, snapshot.log
        snapshot = reduced(snapshot, probe.read(time.time(), snapshot))
        time.sleep(0.01)
print(peak_mib() - before)
"""
PIECES = {
    "no newline": b"x" * 65_536,
    "binary": bytes(range(11, 256)) * 256,
    "carriage returns": b"\r" * 65_536,
    "bars": b"\rtrain:  10%|#         | 1/10 [00:01<00:09, 1.0it/s]" * 1200,
    "NULs": b"\0" * 65_536,
}


@pytest.mark.parametrize("way", ["explain", "follow"])
@pytest.mark.parametrize("kind", PIECES)
def test_junk(kind: str, way: str, tmp_path: Path) -> None:
    log, piece = tmp_path / "junk.log", PIECES[kind]
    with log.open("wb") as out:
        for _ in range(SIZE // len(piece)):
            out.write(piece)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(log), way],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "MALLOC_ARENA_MAX": "2"},
    )
    log.unlink()
    assert done.returncode == 0, done.stderr
    assert 0 < float(done.stdout) < LIMIT_MIB
