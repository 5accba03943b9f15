"""The RolloutManager: generation and evaluation on the engines, the data source."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from tui.demo import checkpoint, samples
from tui.demo.console import Bar, Console
from tui.demo.curve import Curve, Plan
from tui.demo.fleet import EngineChild, Fleet
from tui.demo.health import INTERVAL_S, HealthMonitor
from tui.demo.lines import Actor
from tui.demo.losses import Losses
from tui.demo.pace import Pace
from tui.demo.settings import Settings

_EVAL_SAMPLES = 32
_TICK_S = 0.25
_STRIKE_AT = 0.4


class Rollouts:
    """Uses the engines as Miles' RolloutManager does, and logs in its name."""

    def __init__(
        self,
        settings: Settings,
        console: Console,
        pace: Pace,
        curve: Curve,
        fleet: Fleet,
        hang: Callable[[], None],
    ) -> None:
        self._hang = hang
        self._settings, self._console, self._pace = settings, console, pace
        self._curve, self._fleet = curve, fleet
        self.actor = Actor("RolloutManager", fleet.router.process.pid, "rollout_manager")
        self.health = HealthMonitor(console, self.actor, fleet, enabled=settings.fault_tolerance)
        self._losses = Losses(console, self.actor, fleet, pace)
        self._weight_version = 0

    def announce(self) -> None:
        """What the start of router and engines leaves in the log."""
        host, port = self._settings.host, self._fleet.router.port
        self._log("router_manager.py:58", f"Launch router with args: RouterArgs({host=}, {port=})")
        self._log("router_manager.py:76", f"Router launched at {host}:{port}")
        self._log(
            "rollout_server.py:56",
            f"Engine group 'regular' gpu_offset=0 (abs=0): needs_offload={self._settings.colocate}",
        )
        for slot, engine in enumerate(self._fleet.engines):
            self._announce_ports(slot, engine)
        self.health.start()

    def load(self, rollout: int) -> None:
        """Take the data source up where the checkpoint of `rollout` left it."""
        path = checkpoint.data_source_path(self._settings.load, rollout)
        if path.exists():
            self._log("data_source.py:151", f"load metadata from {path}")
            self._log("data_source.py:152", "load metadata: {}")
        else:
            self._log("data_source.py:148", f"Checkpoint {path} does not exist.")

    def save(self, rollout: int) -> None:
        checkpoint.save_data_source(
            self._settings.save,
            rollout,
            samples=self._settings.samples,
            groups=self._settings.rollout_batch_size,
        )

    def generate(self, rollout: int) -> Plan:
        """One rollout's samples; ends with the rollout side's `perf N`."""
        draw = random.Random(f"{self._settings.seed}:text:{rollout}")  # noqa: S311 - no secret
        self.health.resume()
        started = time.monotonic()
        plan = self._curve.plan(rollout, self._settings.samples)
        self._collect(plan, "Rollout generation", rollout)
        self._log_samples(draw, len(plan.tokens))
        rollout_s = time.monotonic() - started
        metrics = self._curve.generated(
            rollout, plan, rollout_s=rollout_s, weight_version=self._weight_version
        )
        self._log("metrics.py:89", f"perf {rollout}: {metrics}")
        self._log(
            "train_data_conversion.py:317",
            f"Rollout-side DP schedule: num_samples={len(plan.tokens)}, dp_size=1, "
            f"num_steps={self._settings.steps_per_rollout}",
        )
        self.health.pause()
        return plan

    def evaluate(self, rollout: int) -> None:
        draw = random.Random(f"{self._settings.seed}:eval:{rollout}")  # noqa: S311 - no secret
        self.health.resume()
        plan = self._curve.eval_plan(rollout, _EVAL_SAMPLES)
        self._collect(plan, "Eval aime", None)
        self._log("inference_rollout_eval.py:111", samples.eval_sample(draw))
        self._log("metrics.py:55", f"eval {rollout}: {self._curve.evaluated(rollout, plan)}")
        self.health.pause()

    def update_weights(self) -> None:
        """Bring back what died, if fault tolerance is on, and hand out the new weights."""
        self.health.pause()
        dead = [engine for engine in self._fleet.engines if not engine.alive]
        if dead and not self.health.enabled:
            call = "await actor_model.update_weights()"
            raise self._losses.failure("update_weights", call, self._settings.host)
        for engine in dead:
            slot = self._fleet.engines.index(engine)
            self._announce_ports(slot, self._fleet.restart(slot, self._pace))
        if self.health.enabled:
            self.health.report_recovered(len(dead))
        self._weight_version += 1
        for engine in self._fleet.engines:
            engine.send(weights=str(self._weight_version))

    def _collect(self, plan: Plan, name: str, rollout: int | None) -> None:
        """Wait for a plan's samples; the bar moves by whole groups in a rollout."""
        group = self._settings.n_samples_per_prompt if rollout is not None else 1
        total = len(plan.tokens)
        bar = Bar(self._console, self.actor, name, total)
        self._fleet.generate(plan, self._pace)
        struck = False
        while self._fleet.open_requests:
            self._pace.wait_real(max(0.005, self._pace.real_s(_TICK_S)))
            done = total - self._fleet.open_requests
            bar.advance_to(done // group * group)
            if rollout is not None and not struck and done >= total * _STRIKE_AT:
                struck = True
                self._strike(rollout)
            self._losses.notice(self.health, self._settings.host)
        bar.advance_to(total)
        bar.close()

    def _strike(self, rollout: int) -> None:
        engine = self._fleet.engines[0]
        if self._settings.faults.now("engine-dies", rollout):
            engine.process.kill()
            engine.process.wait()
        if self._settings.faults.now("engine-hangs", rollout):
            engine.send(hang=True)
            if self._fleet.living() == [engine]:
                self._hang()
            if self.health.enabled:
                self._pace.wait(INTERVAL_S)
                self._losses.replace(engine, self.health)

    def _log_samples(self, draw: random.Random, count: int) -> None:
        place = "inference_rollout_train.py"
        self._log(f"{place}:130", samples.sample_line(draw, "First rollout sample"))
        self._log(f"{place}:153", samples.sample_line(draw, "Finish rollout"))
        urls = [self._fleet.url(engine) for engine in self._fleet.engines]
        self._log(f"{place}:30", f"Abort request for {urls}")
        self._log(
            "rollout_data_conversion.py:48",
            f"Final collected {count} samples from rollout to train",
        )

    def _announce_ports(self, slot: int, engine: EngineChild) -> None:
        host, port = self._settings.host, engine.port
        ports = {
            "host": host,
            "port": port,
            "nccl_port": port + 1,
            "engine_info_bootstrap_port": port + 2,
            "dist_init_addr": f"{host}:{port + 12}",
        }
        self._log("addr_allocator.py:110", f"Ports for engine {slot}: {ports}")
        self._console.actor(engine.actor, "The server is fired up and ready to roll!")

    def _log(self, place: str, message: str) -> None:
        self._console.log(self.actor, place, message)
