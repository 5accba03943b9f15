"""What an autopsy writes down beside stacks: engines, GPU, memory, the log's end, the kernel's."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tui.miles.secrets import masked_text
from tui.model.gpu import Gpu
from tui.model.judge.words import gib, span
from tui.model.reading import Known, Reading, Unknown
from tui.model.snapshot import Snapshot

LOG_LINES = 400
KERNEL_S = 6.0
_KERNEL_LOGS = (
    ("journalctl", "--dmesg", "--boot", "--no-pager", "--quiet", "--lines=400"),
    ("dmesg", "--ctime"),
)
_TELLING = re.compile(
    r"NVRM|\bXid\b|Out of memory|oom-kill|blocked for more than|soft lockup|hung_task"
)
_MOST_KERNEL_LINES = 400


class NotReadableError(Exception):
    """A source that gave nothing, and why."""


def engines_text(seen: Snapshot) -> str:
    """Each engine's verdict and its counters."""
    return "\n".join(_engine_lines(seen)) or "no engine is known"


def gpu_text(seen: Snapshot) -> str:
    """Each device, and who holds memory on it, as last read: a driver that hangs is not asked."""
    if isinstance(seen.gpus, Unknown):
        raise NotReadableError(seen.gpus.reason)
    devices = seen.gpus.value.devices
    age = span(max(0.0, seen.now - seen.gpus.at))
    return "\n".join((f"read {age} before", *(line for each in devices for line in _device(each))))


def memory_text() -> str:
    """The pool now."""
    try:
        return Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError as error:
        raise NotReadableError(str(error.strerror)) from error


def log_text(seen: Snapshot) -> str:
    """The last lines of the log."""
    if not seen.lines:
        raise NotReadableError("no line of the log is known")
    return "\n".join(f"({line.source}) {line.text}" for line in seen.lines[-LOG_LINES:])


def kernel_log() -> str:
    """The kernel's last lines."""
    faults = []
    for words in _KERNEL_LOGS:
        try:
            ran = subprocess.run(  # noqa: S603 - constant words
                words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                timeout=KERNEL_S,
            )  # fmt: skip
        except FileNotFoundError:
            faults.append(f"{words[0]}: not installed")
        except (OSError, subprocess.TimeoutExpired) as error:
            faults.append(f"{words[0]}: {type(error).__name__}")
        else:
            if ran.returncode == 0 and ran.stdout.strip():
                return "\n".join(ran.stdout.splitlines()[-_MOST_KERNEL_LINES:])
            said = ran.stderr.strip().rpartition("\n")[2]
            faults.append(said or f"{words[0]}: it shows nothing to this user")
    raise NotReadableError("; ".join(faults))


def telling_lines(kernel: str) -> int:
    """How many of the kernel's lines speak of the driver, of memory, or of something that hangs."""
    return sum(1 for line in kernel.splitlines() if _TELLING.search(line))


def masked(text: str) -> str:
    """The text with each line's secrets replaced."""
    return "\n".join(map(masked_text, text.splitlines())) + "\n"


def _engine_lines(seen: Snapshot) -> Iterator[str]:
    tracks = {track.probe.url: track for track in seen.engines}
    for engine in seen.verdict.engines:
        since = span(max(0.0, seen.now - engine.since))
        yield f"engine {engine.label} {engine.url} {engine.state} for {since}: {engine.reason}"
        yield (
            f"  {engine.running_requests:g} running, {engine.queued_requests:g} queued, "
            f"{engine.throughput_tokens_per_s:g} tokens/s, KV {engine.token_usage_ratio:.0%}, "
            f"weights {engine.weight_version or 'unknown'}"
        )
        track = tracks.get(engine.url)
        if track is not None and isinstance(track.probe.metrics, Known):
            metrics = track.probe.metrics.value
            yield f"  {metrics.tokens_total:g} tokens, {metrics.requests_total:g} requests in all"


def _device(device: Gpu) -> Iterator[str]:
    yield (
        f"GPU {device.index} {device.name}: utilisation {_told(device.utilisation_ratio)}, "
        f"power {_told(device.power_w)} W, clock {_told(device.sm_clock_mhz)} MHz, "
        f"{_told(device.temperature_c)} °C"
    )
    if isinstance(device.processes, Unknown):
        yield f"  processes: {device.processes.reason}"
        return
    for process in device.processes.value:
        size = process.memory_bytes
        held = gib(size.value) if isinstance(size, Known) else "memory"
        yield f"  process {process.pid} {process.name}: {held}"


def _told(reading: Reading[float]) -> str:
    return f"{reading.value:g}" if isinstance(reading, Known) else "unknown"
