"""The key that verifies, on the real screen over the real monitor: to its result, and left midway."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import sys
from pathlib import Path

import psutil
import pytest
from terminal import Terminal

pytestmark = pytest.mark.pty

HUGE_BYTES = 64 << 30


def screen(data: Path, root: Path, size: tuple[int, int]) -> Terminal:
    log = data / "captures" / "fresh.log"
    argv = [sys.executable, "-m", "tui", "--log", str(log), "--checkpoints", str(root)]
    return Terminal([*argv, "--interval", "0.2", "--read-only"], size)


@pytest.mark.parametrize("size", [(160, 50), (80, 24)], ids=str)
def test_its_result_comes_back_with_the_scan(
    data: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    root = Path(shutil.copytree(data / "captures" / "ckpt-run-a", tmp_path / "run-a"))
    shard = root / "iter_0000002" / "model" / "__0_0.distcp"
    times = shard.stat()
    content = bytearray(shard.read_bytes())
    content[300_000] ^= 4
    shard.write_bytes(content)
    os.utime(shard, ns=(times.st_atime_ns, times.st_mtime_ns))
    with screen(data, root, size) as terminal:
        terminal.until(lambda text: "a resume loads 4" in text or "4 whole" in text)
        terminal.type("4v")
        terminal.shows("sums ok")
        terminal.type("\x1b[Bv")
        terminal.shows("✖ damaged")
        terminal.type("i")
        terminal.shows("model/__0_0.distcp", "checksum")
        assert terminal.leave() == 0


def test_leaving_in_the_middle_leaves_no_process(data: Path, tmp_path: Path) -> None:
    """One tensor that takes many seconds to read and no room on the disk."""
    adapter = tmp_path / "run-a" / "iter_0000004" / "adapter"
    adapter.mkdir(parents=True)
    for name in ("adapter_megatron_rank0.pt", "training_state_rank0.pt"):
        (adapter / name).write_bytes(b"x")
    header = {"w": {"dtype": "F32", "shape": [HUGE_BYTES // 4], "data_offsets": [0, HUGE_BYTES]}}
    text = json.dumps(header).encode()
    weights = adapter / "adapter_model.safetensors"
    weights.write_bytes(struct.pack("<Q", len(text)) + text)
    os.truncate(weights, 8 + len(text) + HUGE_BYTES)
    with screen(data, tmp_path / "run-a", (160, 50)) as terminal:
        terminal.shows("64.0 GiB", "● whole")
        terminal.type("4v")
        terminal.until(lambda text: re.search(r"◐ \d+ %", text) is not None)
        (reader,) = (
            child
            for child in psutil.Process(terminal.pid).children(recursive=True)
            if "tui.probes.verify_reader" in child.cmdline()
        )
        assert terminal.leave() == 0
        psutil.wait_procs([reader], timeout=300)

    assert not reader.is_running() or reader.status() == psutil.STATUS_ZOMBIE
