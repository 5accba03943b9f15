"""A healthy run of a month on a simulated clock: real log lines, readings between them, and the
verdict at every silence just before it ends, which is when it is longest.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fake_box import NOW, SAVE_ROOT, container, disk, gpu, memory, processes, report
from fake_run import attachment, checkpoint, launch
from logs import ENGINE, ROLLOUT, TRAINER

from tui.miles.loglines import LogParser
from tui.miles.stamps import LogClock
from tui.model import events
from tui.model.checkpoint import Checkpoint, CheckpointState, CheckpointTree
from tui.model.engine import EngineMetrics, EngineProbe
from tui.model.memory import GIB
from tui.model.reading import Absence, Unknown, known
from tui.model.reduce import reduce
from tui.model.snapshot import Limits, LogStatus, Snapshot

DAY = 86_400.0
URL = "http://192.0.2.2:15000"
_LOOK_S = 110.0
_MOMENT_S = 15.0
"""A shorter silence tells nobody anything."""
_SAVE_EVERY, _EVAL_EVERY = 3, 10
_LOG = "runs/plain.log"


@dataclass
class Month:
    """Run it with `pass_days`; `look` is told every snapshot that was judged."""

    look: Callable[[Snapshot], None]
    seed: int = 7
    snapshot: Snapshot = field(default_factory=Snapshot)
    truth: float = 0.0
    """Seconds since the start; no clock shows them."""
    set_s: float = 0.0
    """By how much the clock of the box was set since."""
    zone_s: float = 0.0
    """Of the log's stamps."""
    surprises: dict[str, int] = field(default_factory=dict)
    """How often each of them came."""

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)
        self._parser = LogParser(LogClock(live=True))
        self._metrics = EngineMetrics()
        self._trees: list[Checkpoint] = []
        self._saving: Checkpoint | None = None
        self._left_gib, self._load = 60.0, 0.03
        self._silent_until: dict[str, float] = {}
        self._rollout = self._number = self._looks = 0
        limits = Limits(work_at_risk_s=6 * 3600.0)
        self.snapshot = Snapshot(now=self.wall, attachment=attachment(engines=()), limits=limits)

    @property
    def wall(self) -> float:
        """What the clock of the box says."""
        return NOW + self.truth + self.set_s

    def pass_days(self, days: float) -> None:
        """Start it, and let it run for so long."""
        self._start()
        while self.truth < days * DAY:
            self._round()

    def hang(self, seconds: float) -> None:
        """In training, for so long."""
        self._timer("train")
        self._timer("actor_train")
        self._load = 0.0
        self._wait(seconds)

    # What the run does

    def _start(self) -> None:
        self._tell(events.RunSubmitted(at=self.wall, job_id="raysubmit_1"))
        told = launch(save_interval=_SAVE_EVERY, eval_interval=_EVAL_EVERY, num_rollout=4000)
        self._tell(events.RunLaunched(at=self.wall, job_id="raysubmit_1", launch=told))
        self._wait(420.0)
        host = "{'host': '192.0.2.2', 'port': 15000}"
        self._manager(f"Ports for engine 0: {host}", "addr_allocator.py:110")
        self._engine("The server is fired up and ready to roll!")
        self._engine("INFO:     Uvicorn running on http://192.0.2.2:15000")
        self._falls_to(35.0)
        self._timer("train_wait")
        self._update_weights()

    def _round(self) -> None:
        self._generate()
        self._train()
        if (self._rollout + 1) % _SAVE_EVERY == 0:
            self._save()
        self._update_weights()
        if (self._rollout + 1) % _EVAL_EVERY == 0:
            self._evaluate()
        self._rollout += 1

    def _generate(self) -> None:
        begun, draw = self.truth, self._draw
        if self._rollout % 11 == 10:
            self._manager("Pausing health monitor...", "health_monitor.py:89")
        self._manager("Resuming health monitor...", "health_monitor.py:97")
        whole_s = draw.uniform(700.0, 900.0) * (1.6 if self._rollout == 0 else 1.0)
        for eighth in range(1, 9):
            self._decode(whole_s / 8, running=64, queued=max(0, 256 - 40 * eighth))
            self._bar("Rollout generation", eighth * 30, 256)
        if draw.random() < 0.12:
            self._long_tail(draw.choice((600.0, 1800.0, 5400.0)))
        self._bar("Rollout generation", 256, 256)
        self._metrics = replace(self._metrics, running_requests=0.0, queued_requests=0.0)
        self._manager(f"perf {self._rollout}: {{'perf/rollout_time': {self.truth - begun:.1f}}}")

    def _long_tail(self, seconds: float) -> None:
        """One answer that does not end holds up all others."""
        while seconds > 0:
            step_s = self._draw.uniform(60.0, 110.0)
            self._decode(step_s, running=1, queued=0)
            seconds -= step_s

    def _decode(self, seconds: float, *, running: int, queued: int) -> None:
        self._load = 0.96
        rate = min(3100.0, 190.0 * running) * self._draw.uniform(0.8, 1.1)
        self._metrics = replace(
            self._metrics,
            running_requests=float(running),
            queued_requests=float(queued),
            throughput_tokens_per_s=rate,
        )
        self._wait(seconds)
        self._engine(
            f"Decode batch, #running-req: {running}, #token: {running * 900}, token usage: 0.41, "
            f"cuda graph: True, gen throughput (token/s): {rate:.2f}, #queue-req: {queued}"
        )

    def _train(self) -> None:
        self._falls_to(self._draw.uniform(20.0, 33.0))
        self._load = 0.99
        self._timed("wake_up", 4.0)
        self._timer("train_wait", 700.0)
        self._timer("train")
        self._timed("log_probs", 40.0)
        self._trainer(
            f"rollout {self._rollout}: {{'rollout/raw_reward': 0.41}}", "log_utils.py:123"
        )
        self._timer("actor_train")
        for _ in range(4):
            self._wait(self._draw.uniform(30.0, 60.0))
            values = f"{{'train/loss': 0.0{self._draw.randint(10, 99)}, 'train/grad_norm': 0.9}}"
            self._trainer(f"step {self._number}: {values}", "log_utils.py:542")
            self._number += 1
        self._timer("actor_train", 180.0)
        self._timer("train", 225.0)
        self._timer("train_wait")
        told = f"perf {self._rollout}: {{'perf/step_time': 950.0, 'perf/train_time': 225.0}}"
        self._trainer(told, "train_metric_utils.py:56")

    def _save(self) -> None:
        """Silent until it is done; a slow disk takes minutes, and its files go on growing."""
        iteration = self._rollout + 1
        seconds = self._draw.choice((25.0, 30.0, 35.0, 60.0, 90.0, 600.0))
        self._load = 0.07
        end = self.truth + seconds
        while self.truth < end:
            self._saving = self._checkpoint(iteration, CheckpointState.SAVING)
            self._wait(min(55.0, end - self.truth))
        self._saving = None
        self._trees = [self._checkpoint(iteration, CheckpointState.WHOLE), *self._trees][:3]
        folder = f"{SAVE_ROOT}/iter_{iteration:07d}"
        self._trainer(f"[FSDP] Saved checkpoint to {folder}", "checkpoint.py:248")

    def _checkpoint(self, iteration: int, state: CheckpointState) -> Checkpoint:
        return checkpoint(
            iteration, state=state, taken_at=self.wall, tracked=state is CheckpointState.WHOLE
        )

    def _update_weights(self) -> None:
        self._left_gib = 62.0
        self._timed("sleep", 2.0)
        self._falls_to(self._draw.uniform(24.0, 40.0))
        self._timed("update_weights", self._draw.uniform(4.0, 12.0))

    def _evaluate(self) -> None:
        for tenth in range(1, 11):
            self._decode(self._draw.uniform(20.0, 100.0), running=32, queued=0)
            self._bar("Eval aime", tenth * 3, 32)
        self._manager(f"eval {self._rollout}: {{'eval/aime': 0.31}}", "metrics.py:55")

    # What it prints

    def _trainer(self, message: str, place: str) -> None:
        self._say(f"{TRAINER}[{self._stamp()}.000 actor_cell0_rank0] {place} - {message}")

    def _manager(self, message: str, place: str = "metrics.py:89") -> None:
        self._say(f"{ROLLOUT}[{self._stamp()}.000 rollout_manager] {place} - {message}")

    def _engine(self, message: str) -> None:
        self._say(f"{ENGINE}[{self._stamp()}] {message}")

    def _bar(self, name: str, done: int, total: int) -> None:
        self._say(f"{ROLLOUT}")
        self._say(f"{name}:  50%|█████     | {done}/{total} [10:31<09:12,  2.10s/it]")

    def _timer(self, name: str, elapsed_s: float | None = None) -> None:
        told = "start" if elapsed_s is None else f"end (elapsed: {elapsed_s:.1f}s)"
        self._trainer(f"Timer {name} {told}", "timer.py:31")

    def _timed(self, name: str, seconds: float) -> None:
        self._timer(name)
        self._wait(seconds)
        self._timer(name, seconds)

    def _stamp(self) -> str:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(self.wall + self.zone_s))

    def _say(self, text: str) -> None:
        parsed = self._parser.feed(text, self.wall)
        for event in parsed.events:
            self._tell(event)
        if parsed.line is not None:
            self._tell(events.LinesRead(at=parsed.line.at, lines=(parsed.line,)))

    # What is read meanwhile

    def _falls_to(self, gib: float) -> None:
        """Engines come back from offload, or the trainer does: tens of GiB within two seconds."""
        before = self._left_gib
        for part in range(1, 6):
            self.truth += 0.5
            self._left_gib = before + (gib - before) * part / 5
            self._read_memory()
        self._judge()

    def _wait(self, seconds: float) -> None:
        """Nothing is printed for so long."""
        end = self.truth + seconds
        while self.truth < end:
            self.truth = min(end, self.truth + _LOOK_S * self._draw.uniform(0.8, 1.0))
            self._surprise()
            if seconds > _MOMENT_S:
                self._look()

    def _look(self) -> None:
        at = self.wall
        self._looks += 1
        if self._looks % 4 == 0:
            self._read_memory()
            device = gpu(
                utilisation_ratio=known(self._load, at),
                power_w=known(20.0 + 75.0 * self._load, at),
                sm_clock_mhz=known(2280.0, at),
            )
            self._tell(events.GpusRead(at=at, report=known(report(device), at)))
        if self._metrics.running_requests:
            tokens = self._metrics.realtime_tokens_total + 1000.0
            self._metrics = replace(self._metrics, realtime_tokens_total=tokens)
        metrics = known(self._metrics, at)
        probe = EngineProbe(url=URL, reachable=known(True, at), metrics=metrics)
        self._tell(events.EnginesProbed(at=at, engines=(probe,)))
        saving = () if self._saving is None else (self._saving,)
        tree = CheckpointTree(
            root=SAVE_ROOT,
            tracker=known(str(self._trees[0].iteration), at)
            if self._trees
            else Unknown(why=Absence.MISSING, reason="no tracker file"),
            checkpoints=(*saving, *self._older()),
        )
        is_read = self.truth >= self._silent_until.get("log", 0.0)
        log = LogStatus(path=_LOG, size_bytes=1 << 30, written_at=at, read_at=at)
        self.snapshot = replace(
            self.snapshot,
            checkpoints=known(tree, at),
            processes=known(processes(), at),
            container=known(container(), at),
            disk=known(disk(), at),
            log=log if is_read else self.snapshot.log,
        )
        self._judge()

    def _older(self) -> tuple[Checkpoint, ...]:
        first = tuple(self._trees[:1])
        return first + tuple(replace(each, tracked=False) for each in self._trees[1:])

    def _read_memory(self) -> None:
        left = int(self._left_gib * GIB)
        self._tell(
            events.MemoryRead(at=self.wall, memory=known(memory(available_bytes=left), self.wall))
        )

    def _judge(self) -> None:
        self._tell(events.TimePassed(at=self.wall))
        self.look(self.snapshot)

    def _tell(self, event: events.Event) -> None:
        self.snapshot = reduce(self.snapshot, event)

    # What happens to a healthy box

    def _surprise(self) -> None:
        for probe, until in tuple(self._silent_until.items()):
            if self.truth >= until:
                del self._silent_until[probe]
                self._tell(events.ProbeRecovered(at=self.wall, probe=probe))
        if self._draw.random() < 0.01:
            kind = self._draw.choice(("clock", "zone", "rotation", "silence", "silence"))
            self.surprises[kind] = self.surprises.get(kind, 0) + 1
            getattr(self, f"_{kind}")()

    def _clock(self) -> None:
        by_s = self._draw.choice((2.0, -2.0, 40.0, -40.0, 3600.0, -3600.0, 90_000.0))
        self.set_s += by_s
        self._tell(events.ClockStepped(at=self.wall, by_s=by_s))

    def _zone(self) -> None:
        self.zone_s = self._draw.choice((0.0, 3600.0, 7200.0, -5 * 3600.0))

    def _rotation(self) -> None:
        told = self._draw.choice(("the log was truncated here", "the log was replaced here"))
        self._tell(events.LogBroken(at=self.wall, what=told))

    def _silence(self) -> None:
        """A source does not answer for a while, as when its disk or its daemon is busy."""
        probe = self._draw.choice(("container", "gpu", "engines", "checkpoints", "log"))
        self._silent_until[probe] = self.truth + self._draw.uniform(5.0, 300.0)
        fault = Unknown(why=Absence.TIMED_OUT, reason="no answer for 6 s", at=self.wall)
        self._tell(events.ProbeMissed(at=self.wall, probe=probe, fault=fault))
