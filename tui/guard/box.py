"""The machine we run on, and its clocks."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from tui.guard.records import Box
from tui.guard.sample import Moment

_DRIVER = re.compile(r"NVRM version:.*?\s(\d+(?:\.\d+)+)\s")
_DMI = Path("/sys/class/dmi/id")


def this_box() -> Box:
    """What this machine says of itself; empty where it does not."""
    kernel = os.uname()
    driver = _DRIVER.search(_said(Path("/proc/driver/nvidia/version")) + " ")
    vendor, product = _said(_DMI / "sys_vendor"), _said(_DMI / "product_name")
    return Box(
        boot_id=this_boot(),
        kernel=kernel.release,
        machine=kernel.machine,
        host=kernel.nodename,
        product=f"{vendor} {product}".strip(),
        bios=f"{_said(_DMI / 'bios_version')} {_said(_DMI / 'bios_date')}".strip(),
        driver=driver[1] if driver else "",
    )


def this_boot() -> str:
    """The kernel's name for the time since the box was started."""
    return _said(Path("/proc/sys/kernel/random/boot_id"))


def this_moment() -> Moment:
    """Now, on the clock that can be set and on the one that cannot."""
    uptime_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    return Moment(
        at=time.time(),
        uptime_s=uptime_s,
        asleep_s=max(0.0, uptime_s - time.clock_gettime(time.CLOCK_MONOTONIC)),
    )


def _said(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()[:200]
    except OSError:
        return ""
