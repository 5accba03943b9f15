"""The router's process: it knows its workers' URLs and believes in them, as sglang_router does."""

from __future__ import annotations

import argparse
import json
import threading
import uuid
from typing import Any

from tui.demo import child


class Workers:
    """The list `GET /workers` answers. A dead worker stays on it, as healthy, until removed."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._ids: dict[str, str] = {}

    def replace(self, urls: list[str]) -> None:
        with self._lock:
            self._ids = {url: self._ids.get(url, str(uuid.uuid4())) for url in urls}

    def workers(self) -> child.Reply:
        with self._lock:
            listed = [self._described(url, identity) for url, identity in self._ids.items()]
        stats = {"prefill_count": 0, "decode_count": 0, "regular_count": len(listed)}
        answer = {"workers": listed, "total": len(listed), "stats": stats}
        return 200, "application/json", json.dumps(answer, separators=(",", ":"))

    def _described(self, url: str, identity: str) -> dict[str, Any]:
        return {
            "id": identity,
            "url": url,
            "model_id": self._model,
            "priority": 50,
            "cost": 1.0,
            "worker_type": "regular",
            "is_healthy": True,
            "load": 0,
            "connection_mode": "HTTP",
            "metadata": {
                "model_path": self._model,
                "tp_size": "1",
                "served_model_name": self._model,
            },
            "disable_health_check": False,
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", required=True)
    given = parser.parse_args()
    child.unblock_signals()
    workers = Workers(given.model)
    routes = {"/workers": workers.workers, "/health": lambda: (200, "text/plain", "OK")}
    child.report(port=child.serve(given.host, given.port, routes))
    child.obey(lambda command: workers.replace(command["workers"]))


if __name__ == "__main__":
    main()
