"""A GPU for the demo: what its simulated run writes to `gpu.json`, read as if NVML had told it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tui.model.events import Event, GpusRead
from tui.model.gpu import Gpu, GpuProcess, GpuReport
from tui.model.reading import Absence, Reading, Unknown, known
from tui.model.snapshot import Snapshot
from tui.probes.gpu_wire import DECODING_ERRORS, VALUES


class SimulatedGpu:
    """The probe of a GPU that is a file. What the file leaves out is not supported."""

    name = "gpu"
    cadence_s = 1.0
    deadline_s = 2.0

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:  # noqa: ARG002 of the protocol
        """The file as it is now."""
        return (GpusRead(at=now, report=self._report(now)),)

    def close(self) -> None:
        """Nothing is held."""

    def _report(self, now: float) -> Reading[GpuReport]:
        try:
            plain = json.loads(self._path.read_bytes())
            return known(
                GpuReport(
                    driver_version=plain["driver_version"],
                    devices=tuple(_gpu(device, now) for device in plain["devices"]),
                    library="simulated",
                ),
                now,
            )
        except FileNotFoundError:
            reason = f"the simulated run has written no {self._path.name} yet"
            return Unknown(why=Absence.MISSING, reason=reason, at=now)
        except (OSError, *DECODING_ERRORS) as error:
            reason = f"{self._path.name} cannot be read: {error!r}"
            return Unknown(why=Absence.ERROR, reason=reason, at=now)


def _gpu(plain: Mapping[str, Any], now: float) -> Gpu:
    left_out = Unknown(why=Absence.NOT_SUPPORTED, reason="not simulated", at=now)
    return Gpu(
        index=plain["index"],
        name=plain["name"],
        uuid=plain.get("uuid", ""),
        unified=plain["unified"],
        processes=known(tuple(_process(one, now) for one in plain.get("processes", ())), now),
        **{
            field: known(value(plain[field]), now) if field in plain else left_out
            for field, value in VALUES.items()
        },
    )


def _process(plain: Mapping[str, Any], now: float) -> GpuProcess:
    return GpuProcess(
        pid=plain["pid"], name=plain["name"], memory_bytes=known(int(plain["memory_bytes"]), now)
    )
