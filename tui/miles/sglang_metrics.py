"""What SGLang's engines and routers answer over HTTP, read. Total: any text gives a value or None.

Names are those of SGLang's `observability/metrics_collector.py`, with `sglang:` on an engine and
`sglang_` behind a router. Each rank of an engine exports the gauges of its data-parallel replica
again, so ranks that repeat are folded by their maximum before replicas are added up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from tui.model.engine import EngineMetrics

_MOST_CHARS = 2 << 20
_MOST_SAMPLES = 1024
_MOST_WORKERS = 256

_SUMS = {
    "num_running_reqs": "running_requests",
    "num_queue_reqs": "queued_requests",
    "gen_throughput": "throughput_tokens_per_s",
    "prompt_tokens_total": "prompt_tokens_total",
    "generation_tokens_total": "generation_tokens_total",
    "realtime_tokens_total": "realtime_tokens_total",
    "num_requests_total": "requests_total",
    "num_aborted_requests_total": "aborted_requests_total",
    "num_retracted_reqs": "retracted_requests",
}
_MEANS = {"token_usage": "token_usage_ratio", "cache_hit_rate": "cache_hit_ratio"}
_FIELDS = _SUMS | _MEANS

_SAMPLE = re.compile(
    rf"^sglang[:_](?P<family>{'|'.join(_FIELDS)})"
    r"(?:\{(?P<labels>.{0,2048})\})?[ \t]+(?P<value>\S{1,32})",
    re.MULTILINE,
)
_LABEL = re.compile(r'([A-Za-z_]\w{0,31})="((?:[^"\\]|\\.){0,512})"')
_REPEATING = frozenset(("tp_rank", "pp_rank", "moe_ep_rank", "moe_dp_rank", "attn_cp_rank", "pid"))
"""Labels of ranks that work on the same requests, and so report the same numbers."""

Labels = frozenset[tuple[str, str]]


def parse_metrics(text: str) -> EngineMetrics | None:
    """The engine's metrics, None when the text holds none of them. NaN counts as not given."""
    replicas: dict[str, dict[Labels, float]] = {}
    for sample in islice(_SAMPLE.finditer(text[:_MOST_CHARS]), _MOST_SAMPLES):
        value = _measured(sample["value"])
        by_replica = replicas.setdefault(sample["family"], {})
        if value is not None:
            replica = _replica(sample["labels"] or "")
            by_replica[replica] = max(value, by_replica.get(replica, 0.0))
    if not replicas:
        return None
    return EngineMetrics(
        **{_FIELDS[family]: _folded(family, seen.values()) for family, seen in replicas.items()}
    )


def parse_workers(text: str) -> tuple[str, ...] | None:
    """The engines of a router's `/workers` or `/list_workers`, None when there is no such list."""
    answer = _json_object(text)
    listed = answer.get("workers", answer.get("urls"))
    if not isinstance(listed, list):
        return None
    named = (item.get("url") if isinstance(item, dict) else item for item in listed)
    urls = (base_url(item) for item in islice(named, _MOST_WORKERS) if isinstance(item, str))
    return tuple(dict.fromkeys(url for url in urls if url))


def parse_weight_version(text: str) -> str | None:
    """`weight_version` of `/model_info`, None when it is not in there."""
    version = _json_object(text).get("weight_version")
    return str(version)[:64] if isinstance(version, str | int) else None


def base_url(text: str) -> str:
    """`http://host:port` of an address as people and routers write it, empty when it is none.

    A data-parallel router appends the rank: `http://10.0.0.5:15000@3`.
    """
    address = re.sub(r"@\d+/?$", "", text.strip())
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not host or re.search(r"[\s%@]", host):
        return ""
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port is not None else "")


def _measured(value: str) -> float | None:
    """The value as a number; all of these families are finite and never below zero."""
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0.0 <= number < 1e18 else None


def _replica(labels: str) -> Labels:
    return frozenset(pair for pair in _LABEL.findall(labels) if pair[0] not in _REPEATING)


def _folded(family: str, values: Iterable[float]) -> float:
    each = tuple(values)
    if family in _SUMS or not each:
        return sum(each, 0.0)
    return sum(each) / len(each)


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
