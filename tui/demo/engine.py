"""One SGLang engine's process: requests that take their time, and the HTTP that tells of them.

As in SGLang, gauges change only when a decode interval is logged and keep their last value when
the engine falls quiet; request counters move when a request ends.
"""

from __future__ import annotations

import argparse
import json
import math
import threading
import time
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from tui.demo import child, lines
from tui.demo.exposition import exposition

_TEXT, _JSON = "text/plain; charset=utf-8", "application/json"
_MAX_RUNNING = 64
_POOL_TOKENS = 199_680
_PROMPT_TOKENS = 112
_FULL_SPEED_AT = 16


@dataclass(slots=True)
class Batch:
    """The requests of one call, each with the time it will take."""

    number: int
    finish_s: list[float]
    tokens: list[int]
    peak_tokens_per_s: float
    log_every_s: float
    started: float = field(default_factory=time.monotonic)
    logged: float = 0.0
    done: int = 0

    @property
    def left(self) -> int:
        return len(self.finish_s) - self.done


class Engine:
    """State shared by the HTTP threads, the command loop and the working thread."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._name = PurePath(model).name
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._batch: Batch | None = None
        self._hung = False
        self._weight_version = "default"
        self._gauges: dict[str, float] = {}
        self._counters: dict[str, float] = {}
        self._decoded = 0.0

    def perform(self, command: dict[str, Any]) -> None:
        match command:
            case {"generate": batch}:
                self._begin(Batch(**batch))
            case {"weights": version}:
                self._weight_version = version
            case {"hang": _}:
                self._hung = True
            case _:
                raise ValueError(f"no such command: {command}")

    def work(self) -> None:
        """Finish requests as their time comes, for ever."""
        while True:
            batch = self._batch
            if batch is None or not batch.left or self._hung:
                self._wake.wait()
                self._wake.clear()
                continue
            tick_s = min(0.05, max(0.002, batch.finish_s[-1] / 100))
            time.sleep(tick_s)
            with self._lock:
                self._advance(batch, tick_s)

    def metrics(self) -> child.Reply:
        with self._lock:
            text = exposition(self._name, self._gauges, self._counters, self._decoded)
        return 200, _TEXT, text

    def health(self) -> child.Reply:
        return 200, _TEXT, ""

    def health_generate(self) -> child.Reply:
        time.sleep(1.0)
        return 503 if self._hung else 200, _TEXT, ""

    def model_info(self) -> child.Reply:
        answer = {
            "model_path": self._model,
            "tokenizer_path": self._model,
            "is_generation": True,
            "preferred_sampling_params": None,
            "weight_version": self._weight_version,
        }
        return 200, _JSON, json.dumps(answer)

    def _begin(self, batch: Batch) -> None:
        running = min(_MAX_RUNNING, batch.left)
        with self._lock:
            self._batch = batch
            said = (
                f"Prefill batch, #new-seq: {running}, #new-token: {running * _PROMPT_TOKENS}, "
                f"#cached-token: {running * 48}, token usage: 0.01, #running-req: 0, "
                f"#queue-req: {batch.left - running}, #pending-token: 0, cuda graph: False, "
                f"input throughput (token/s): {running * 127.4:.2f}"
            )
            self._publish(batch, 0.0)
        child.report(log=lines.sglang(lines.now(), said))
        self._wake.set()

    def _advance(self, batch: Batch, tick_s: float) -> None:
        elapsed_s = time.monotonic() - batch.started
        done = sum(1 for finish_s in batch.finish_s if finish_s <= elapsed_s)
        rate = _throughput(batch, elapsed_s)
        self._decoded += rate * tick_s
        if done > batch.done:
            ended = batch.tokens[batch.done : done]
            batch.done = done
            self._count(len(ended), sum(ended))
            child.report(batch=batch.number, done=done)
            for number in range(len(ended)):
                child.report(log=_served(40_000 + (batch.done + number) % 20_000))
        if batch.left and elapsed_s - batch.logged >= batch.log_every_s:
            batch.logged = elapsed_s
            self._publish(batch, rate)
            child.report(log=lines.sglang(lines.now(), self._decode_line(rate)))

    def _count(self, requests: int, tokens: int) -> None:
        for name, more in (
            ("prompt_tokens_total", requests * _PROMPT_TOKENS),
            ("generation_tokens_total", tokens),
            ("num_requests_total", requests),
        ):
            self._counters[name] = self._counters.get(name, 0.0) + more
        self._counters.setdefault("num_aborted_requests_total", 0.0)

    def _publish(self, batch: Batch, rate: float) -> None:
        running = min(_MAX_RUNNING, batch.left)
        used = running * (_PROMPT_TOKENS + 640)
        self._gauges = {
            "num_running_reqs": float(running),
            "num_queue_reqs": float(batch.left - running),
            "gen_throughput": rate,
            "token_usage": round(used / _POOL_TOKENS, 4),
            "full_token_usage": round(used / _POOL_TOKENS, 4),
            "num_used_tokens": float(used),
            "cache_hit_rate": 0.43,
            "is_cuda_graph": 1.0,
            "fwd_occupancy": math.nan,
        }

    def _decode_line(self, rate: float) -> str:
        shown = self._gauges
        return (
            f"Decode batch, #running-req: {shown['num_running_reqs']:.0f}, "
            f"#token: {shown['num_used_tokens']:.0f}, token usage: {shown['token_usage']:.2f}, "
            f"cuda graph: True, gen throughput (token/s): {rate:.2f}, "
            f"#queue-req: {shown['num_queue_reqs']:.0f}"
        )


def _served(client_port: int) -> str:
    said = f'INFO:     127.0.0.1:{client_port} - "POST /generate HTTP/1.1" 200 OK'
    return lines.sglang(lines.now(), said)


def _throughput(batch: Batch, elapsed_s: float) -> float:
    """Full speed while the batch is full, less as the long tail thins it out."""
    share = min(1.0, min(_MAX_RUNNING, batch.left) / _FULL_SPEED_AT)
    return batch.peak_tokens_per_s * share * (1.0 + 0.04 * math.sin(7.0 * elapsed_s))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", required=True)
    given = parser.parse_args()
    child.unblock_signals()
    engine = Engine(given.model)
    threading.Thread(target=engine.work, daemon=True, name="scheduler").start()
    routes = {
        "/health": engine.health,
        "/health_generate": engine.health_generate,
        "/metrics": engine.metrics,
        "/model_info": engine.model_info,
    }

    def say(hit: str) -> None:
        child.report(log=lines.sglang(lines.now(), f"INFO:     {hit}"))

    child.report(port=child.serve(given.host, given.port, routes, say))
    child.obey(engine.perform)


if __name__ == "__main__":
    main()
