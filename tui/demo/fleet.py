"""The run's side of its engines and router: start them, give them work, hear from them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO

from tui.demo.console import Console
from tui.demo.curve import Plan
from tui.demo.lines import Actor
from tui.demo.pace import Pace

_START_DEADLINE_S = 30.0
_PEAK_TOKENS_PER_S = 3150.0
_DECODE_LOG_INTERVAL_S = 1.6


class ChildDiedError(Exception):
    """A child process ended before it served."""


class Child:
    """A child process with a port, commands to it, and its reports as they come."""

    def __init__(self, module: str, *argv: str) -> None:
        self.process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", f"tui.demo.{module}", *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self.port = 0
        self._serves = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True, name=module)
        self._listener.start()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def wait_until_it_serves(self, pace: Pace) -> None:
        deadline = time.monotonic() + _START_DEADLINE_S
        while not self._serves.is_set():
            if not self.alive or time.monotonic() > deadline:
                raise ChildDiedError(f"{self.process.args!r} does not serve")
            pace.wait_real(0.01)

    def send(self, **command: object) -> None:
        with contextlib.suppress(OSError):  # gone: its silence is what the run goes by
            _pipe(self.process.stdin).write(json.dumps(command) + "\n")
            _pipe(self.process.stdin).flush()

    def end(self) -> None:
        """Kill it and wait; a stopped process ends too."""
        self.process.kill()
        self.process.wait()
        self._listener.join()
        with contextlib.suppress(OSError):
            _pipe(self.process.stdin).close()
        _pipe(self.process.stdout).close()

    def heard(self, message: dict[str, object]) -> None:
        """One report; the first says that it serves."""
        port = message.get("port")
        if isinstance(port, int):
            self.port = port
            self._serves.set()

    def _listen(self) -> None:
        for line in _pipe(self.process.stdout):
            self.heard(json.loads(line))


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise ChildDiedError("a child without its pipe")
    return pipe


class EngineChild(Child):
    """One engine: knows how many of its requests are open, prints what it says."""

    def __init__(self, host: str, port: int, model: str, console: Console) -> None:
        self._console = console
        self._batch = self._asked = self._done = 0
        super().__init__("engine", "--host", host, "--port", str(port), "--model", model)
        self.actor = Actor("SGLangEngine", self.process.pid)

    @property
    def open_requests(self) -> int:
        return self._asked - self._done

    def ask(self, finish_s: list[float], tokens: list[int], **terms: float) -> None:
        """Give it requests, in place of those it has."""
        self._batch += 1
        self._done, self._asked = 0, len(finish_s)
        if finish_s:
            batch = {"number": self._batch, "finish_s": finish_s, "tokens": tokens, **terms}
            self.send(generate=batch)

    def forget(self) -> int:
        """Count its open requests as no longer its own; how many there were."""
        left, self._asked = self.open_requests, self._done
        return left

    def heard(self, message: dict[str, object]) -> None:
        super().heard(message)
        done, said = message.get("done"), message.get("log")
        if isinstance(done, int) and message.get("batch") == self._batch:
            self._done = done
        if isinstance(said, str):
            self._console.actor(self.actor, said)


class Fleet:
    """Every engine of the run, in slots that a restarted one takes over, and the router."""

    def __init__(
        self, host: str, ports: Sequence[int], router_port: int, model: str, console: Console
    ) -> None:
        self._host, self._model, self._console = host, model, console
        self.router = Child("router", "--host", host, "--port", str(router_port), "--model", model)
        self.engines = [EngineChild(host, port, model, console) for port in ports]

    def wait_until_it_serves(self, pace: Pace) -> None:
        for child in (self.router, *self.engines):
            child.wait_until_it_serves(pace)
        self.list_workers()

    def url(self, engine: Child) -> str:
        return f"http://{self._host}:{engine.port}"

    def list_workers(self) -> None:
        """Tell the router of every engine, dead ones too: it does not know."""
        self.router.send(workers=[self.url(engine) for engine in self.engines])

    def unlist(self, dead: EngineChild) -> None:
        urls = [self.url(engine) for engine in self.engines if engine is not dead]
        self.router.send(workers=urls)

    def restart(self, slot: int, pace: Pace) -> EngineChild:
        """A new engine in an old slot, on any free port."""
        self.engines[slot].end()
        self.engines[slot] = EngineChild(self._host, 0, self._model, self._console)
        self.engines[slot].wait_until_it_serves(pace)
        self.list_workers()
        return self.engines[slot]

    def living(self) -> list[EngineChild]:
        return [engine for engine in self.engines if engine.alive]

    @property
    def open_requests(self) -> int:
        return sum(engine.open_requests for engine in self.engines)

    def generate(self, plan: Plan, pace: Pace) -> None:
        """Share a plan's samples out to the engines that live; a dead fleet gets them too."""
        living = self.living() or self.engines[:1]
        for engine in self.engines:
            engine.forget()
        for number, engine in enumerate(living):
            finish_s = [pace.real_s(at) for at in plan.finish_s[number :: len(living)]]
            self._ask(engine, finish_s, list(plan.tokens[number :: len(living)]), pace)

    def take_over(self, lost: EngineChild, pace: Pace) -> None:
        """Give a lost engine's open requests to the others, on top of what they have."""
        left = lost.forget()
        others = [engine for engine in self.living() if engine is not lost]
        for number, engine in enumerate(others):
            again = engine.open_requests + len(range(number, left, len(others)))
            finish_s = [pace.real_s(12.0 * (n + 1) / again) for n in range(again)]
            self._ask(engine, finish_s, [700] * again, pace)

    def _ask(
        self, engine: EngineChild, finish_s: list[float], tokens: list[int], pace: Pace
    ) -> None:
        # Tokens shrink with the time they take, so that their rate stays that of a real engine.
        engine.ask(
            finish_s,
            [max(1, int(pace.real_s(count))) for count in tokens],
            peak_tokens_per_s=_PEAK_TOKENS_PER_S / len(self.engines),
            log_every_s=max(0.2, pace.real_s(_DECODE_LOG_INTERVAL_S)),
        )

    def close(self) -> None:
        for child in (*self.engines, self.router):
            child.end()
