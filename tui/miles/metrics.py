"""Miles' metric lines: a word, a number, and a Python dict as `repr` prints it.

Never JSON: single quotes, bare `nan` and `inf`, `np.float64(0.5)`. Source: Miles'
training_utils/log_utils.py, ray/rollout/metrics.py, utils/train_metric_utils.py.
"""

from __future__ import annotations

import re

from tui.model.events import MetricKind

METRIC_LINE = re.compile(
    r"(?P<critic>critic-)?(?P<word>step|rollout|perf|eval|multi_turn|passrate) "
    r"(?P<number>\d{1,12}): (?P<values>\{[^{}]*\})"
)
_PAIR = re.compile(
    r"'(?P<key>(?:[^'\\]|\\.){1,200})': (?:np\.\w+\(|tensor\()?"
    r"(?P<value>-?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|nan|inf)|True|False)\b"
)
_KEYS_LIMIT = 1024

_KINDS = {
    "step": MetricKind.STEP,
    "rollout": MetricKind.ROLLOUT,
    "eval": MetricKind.EVAL,
    "multi_turn": MetricKind.MULTI_TURN,
    "passrate": MetricKind.PASSRATE,
}


def parsed_values(text: str) -> tuple[tuple[str, float], ...]:
    """The numbers of a printed dict, in order; entries that are no numbers are left out."""
    out = []
    for pair in _PAIR.finditer(text):
        value = pair["value"]
        number = float(value == "True") if value in ("True", "False") else float(value)
        out.append((pair["key"], number))
        if len(out) >= _KEYS_LIMIT:
            break
    return tuple(out)


def metric_kind(word: str, values: tuple[tuple[str, float], ...]) -> MetricKind:
    """Which line it is; the two that start `perf N:` are told apart by what they hold."""
    if word != "perf":
        return _KINDS[word]
    keys = {key for key, _ in values}
    if "perf/rollout_time" in keys or any(key.startswith("rollout/") for key in keys):
        return MetricKind.PERF_ROLLOUT
    return MetricKind.PERF_TRAIN
