"""The trainer: its timers, its steps, its checkpoints, in the name of rank 0."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable
from pathlib import Path

from tui.demo import checkpoint, dcp
from tui.demo.checkpoint import Stage
from tui.demo.console import Bar, Console
from tui.demo.curve import Curve, Metrics, Plan
from tui.demo.failure import actor_died, task_error
from tui.demo.lines import Actor
from tui.demo.pace import Pace
from tui.demo.resume import LoadFailedError, Resume, resume
from tui.demo.settings import Settings
from tui.demo.timers import Timers
from tui.demo.weights import Model

_MICRO_BATCHES = 8
_LOG_PROBS_S, _ACTOR_TRAIN_S, _SAVE_S = 4.0, 16.0, 3.0
_WAKE_UP_S, _SLEEP_S, _UPDATE_WEIGHTS_S = 0.6, 0.5, 1.5
_STRIKE_AT = 3
_NAN_METRICS = ("train/loss", "train/pg_loss", "train/ppo_kl", "train/grad_norm")


class Trainer:
    """One training worker."""

    def __init__(
        self,
        settings: Settings,
        console: Console,
        pace: Pace,
        curve: Curve,
        hang: Callable[[], None],
    ) -> None:
        self._settings, self._console, self._pace, self._curve = settings, console, pace, curve
        self._hang = hang
        self._model = Model(total_mb=settings.model_mb, seed=settings.seed)
        self.actor = Actor("FSDPTrainRayActor", os.getpid(), "actor_cell0_rank0")
        self.timers = Timers(console, self.actor)

    def load(self) -> Resume:
        """Load what there is to load; the driver starts where this says."""
        self._log("lr_scheduler.py:80", "> learning rate decay style: constant")
        try:
            loaded = resume(self._settings.load, self._settings.hf_checkpoint)
        except LoadFailedError as error:
            frame = (
                '  File "/root/miles/miles/backends/fsdp_utils/checkpoint.py", line 103, in load'
            )
            raise task_error(
                self.actor,
                "init",
                self._settings.host,
                str(error),
                call="await actor_model.init()",
                remote=(frame,),
            ) from error
        for line, message in loaded.said:
            self._pace.wait(0.3)
            self._log(f"checkpoint.py:{line}", message)
        return loaded

    def train(self, rollout: int, plan: Plan) -> None:
        """From waking up to the trainer's `perf N`."""
        timers = self.timers
        self._timed("wake_up", _WAKE_UP_S)
        timers.end("train_wait")
        timers.start("train")
        self._log_probs(rollout)
        self._log("log_utils.py:99", "ft op=cross_cell phase=start kind=log_gather rank=0")
        self._log("log_utils.py:123", f"rollout {rollout}: {self._curve.collected(rollout, plan)}")
        self._actor_train(rollout)
        timers.end("train")
        timers.start("train_wait")
        self._log("train_metric_utils.py:56", f"perf {rollout}: {self._perf()}")

    def save(self, rollout: int) -> None:
        """The trainer's part of a checkpoint, at the pace of a disk."""
        folder = checkpoint.iteration_folder(self._settings.save, rollout + 1)
        self._warn_of_overwriting(folder / "model")
        stages = checkpoint.save(
            self._settings.save, rollout, self._model, seed=self._settings.seed
        )
        try:
            for stage in stages:
                self.strike_save(rollout, stage)
                if stage is Stage.OPTIMIZER and self._settings.faults.now("disk-full", rollout):
                    stages.throw(OSError(28, "No space left on device"))
                self._pace.wait(_SAVE_S / len(Stage))
        except OSError as error:
            raise task_error(
                self.actor,
                "save_model",
                self._settings.host,
                f"OSError: {error}",
                call="await actor_model.save_model(rollout_id)",
                remote=_SAVE_FRAMES,
            ) from error
        self._log("checkpoint.py:248", f"[FSDP] Saved checkpoint to {folder}")

    def strike_save(self, rollout: int, stage: Stage) -> None:
        """Die as a whole container does, if this is the chosen stage."""
        if self._settings.faults.killed_at(rollout) is stage:
            signal.raise_signal(signal.SIGKILL)

    def sleep(self) -> None:
        if self._settings.colocate:
            self._timed("sleep", _SLEEP_S)

    def update_weights(self) -> None:
        self.timers.start("update_weights")
        self._pace.wait(_UPDATE_WEIGHTS_S)
        self._log("update_weight_utils.py:157", "Using flattened tensor bucket")
        self.timers.end("update_weights")

    def _log_probs(self, rollout: int) -> None:
        self.timers.start("log_probs")
        step_s = _LOG_PROBS_S * self._curve.jitter("log_probs", rollout) / self._steps
        for _ in range(self._steps):
            self._micro_batches("log_probs", step_s)
        self.timers.end("log_probs")

    def _actor_train(self, rollout: int) -> None:
        self.timers.start("actor_train")
        step_s = _ACTOR_TRAIN_S * self._curve.jitter("actor_train", rollout) / self._steps
        for number in range(self._steps):
            self._micro_batches("actor_train", step_s, rollout)
            step = rollout * self._steps + number
            self._log("log_utils.py:542", f"step {step}: {self._stepped(rollout, number, step)}")
        self.timers.end("actor_train")

    def _micro_batches(self, name: str, whole_s: float, strikes_at: int | None = None) -> None:
        bar = Bar(self._console, self.actor, name, _MICRO_BATCHES)
        for done in range(1, _MICRO_BATCHES + 1):
            self._pace.wait(whole_s / _MICRO_BATCHES)
            bar.advance_to(done)
            if done == _STRIKE_AT and strikes_at is not None:
                self._strike(strikes_at)
        bar.close()

    def _strike(self, rollout: int) -> None:
        faults = self._settings.faults
        if faults.now("stall", rollout):
            self._hang()
            self._pace.wait_for_ever()
        if faults.now("trainer-dies", rollout):
            call = "await actor_model.train(rollout_id, rollout_data_pack)"
            raise actor_died(self.actor, call, self._settings.host)

    def _stepped(self, rollout: int, number: int, step: int) -> Metrics:
        metrics = self._curve.stepped(step, on_policy=number == 0)
        faults = self._settings.faults
        if faults.now("nan", rollout) and number == 0:
            return metrics | {"train/grad_norm": math.nan}
        if faults.since("nan", rollout):
            return metrics | dict.fromkeys(_NAN_METRICS, math.nan)
        return metrics

    def _perf(self) -> Metrics:
        taken = self.timers.taken()
        step_s = taken["train_wait"] + taken["train"]
        return {
            **{f"perf/{name}_time": elapsed_s for name, elapsed_s in taken.items()},
            "perf/log_probs_tflops": 31.0 / max(taken["log_probs"], 1e-6),
            "perf/actor_train_tflops": 420.0 / max(taken["actor_train"], 1e-6),
            "perf/actor_train_tok_per_s": 96_000.0 / max(taken["actor_train"], 1e-6),
            "perf/step_time": step_s,
            "perf/wait_time_ratio": taken["train_wait"] / step_s,
        }

    def _timed(self, name: str, simulated_s: float) -> None:
        self.timers.start(name)
        self._pace.wait(simulated_s)
        self.timers.end(name)

    def _warn_of_overwriting(self, folder: Path) -> None:
        if (folder / dcp.INDEX).exists():
            self._console.actor(
                self.actor,
                "/usr/local/lib/python3.12/dist-packages/torch/distributed/checkpoint/"
                f"filesystem.py:802: UserWarning: Detected an existing checkpoint in {folder}, "
                "overwriting since self.overwrite=True.",
            )

    @property
    def _steps(self) -> int:
        return self._settings.steps_per_rollout

    def _log(self, place: str, message: str) -> None:
        self._console.log(self.actor, place, message)


_SAVE_FRAMES = (
    '  File "/root/miles/miles/backends/fsdp_utils/actor.py", line 353, in save_model',
    "    checkpoint.save(self, rollout_id)",
    '  File "/root/miles/miles/backends/fsdp_utils/checkpoint.py", line 222, in save',
    "    dcp.save(optimizer_state, checkpoint_id=str(optimizer_dir))",
    "torch.distributed.checkpoint.api.CheckpointException: "
    "CheckpointException ranks:dict_keys([0])",
    "Traceback (most recent call last): (RANK 0)",
)
