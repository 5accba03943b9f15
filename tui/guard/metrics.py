"""A snapshot in Prometheus' text format. Pure.

Names by Prometheus' conventions: base units, a moment instead of an age, `_total` for what only
counts up. A state is one series each, of which one is 1. What is not known is not there.
"""

from __future__ import annotations

import math

from tui.guard.box_metrics import BOX
from tui.guard.metric import Labels
from tui.guard.run_metrics import RUN
from tui.model.snapshot import Snapshot
from tui.model.text import harmless

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(snapshot: Snapshot, run: str) -> str:
    """All that is known of the run, each series with a label `run` of that value."""
    lines: list[str] = []
    for metric in (*RUN, *BOX):
        name = f"milepost_{metric.name}"
        told = [
            f"{name}{_labels({'run': run, **labels})} {_number(value)}"
            for labels, value in metric.samples(snapshot)
            if value is not None
        ]
        if told:
            lines += [f"# HELP {name} {metric.meaning}", f"# TYPE {name} {metric.kind}", *told]
    return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    told = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return "{" + ",".join(told) + "}"


def _escaped(value: str) -> str:
    return harmless(value).replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if float(value).is_integer() else repr(float(value))
