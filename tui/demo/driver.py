"""The driver, as Miles' train.py: start, rounds of generate, train, save and update, the end."""

from __future__ import annotations

from tui.demo import base, past, submission
from tui.demo.box import Activity, Box
from tui.demo.checkpoint import Stage
from tui.demo.console import Console
from tui.demo.curve import Curve
from tui.demo.failure import JobFailedError, driver_error
from tui.demo.fleet import ChildDiedError, Fleet
from tui.demo.lines import Actor
from tui.demo.pace import Pace
from tui.demo.rollouts import Rollouts
from tui.demo.settings import Settings
from tui.demo.training import Trainer

_IMPORT_WARNINGS = (
    "WARNING:root:deep_ep is not installed, some functionalities may be limited.",
    "WARNING:miles_plugins.megatron_bridge:miles bridge shim _install_bridge_pp_group_unwrap not "
    "applied: type object 'MegatronParamMapping' has no attribute 'broadcast_obj_from_pp_rank'",
)


def run(settings: Settings, console: Console, pace: Pace) -> int:
    """The whole run; the exit code `ray job submit` would end with."""
    base.provide(settings)
    if settings.faults.chosen("fresh-start"):
        past.leave(settings)
    job = submission.submit(settings, console)
    pace.wait(1.5)
    failure = None
    try:
        _Job(settings, console, pace).run()
    except JobFailedError as error:
        failure = error
        for line in error.words:
            console.driver(line)
    pace.wait(1.0)
    submission.close(console, job, failed=failure is not None)
    return 1 if failure else 0


class _Job:
    def __init__(self, settings: Settings, console: Console, pace: Pace) -> None:
        self._settings, self._console, self._pace = settings, console, pace
        self._box = Box(settings.directory, seed=settings.seed)
        self._curve = Curve(settings.seed)

    def run(self) -> None:
        self._box.write()
        self._box.start()
        settings = self._settings
        for warning in _IMPORT_WARNINGS:
            self._console.driver(warning)
        self._console.main("placement_group.py:113", "Creating placement group with 1 GPUs...")
        fleet = Fleet(
            settings.host,
            settings.engine_ports,
            settings.router_port,
            settings.hf_checkpoint,
            self._console,
        )
        try:
            fleet.wait_until_it_serves(self._pace)
            self._train(fleet)
        except ChildDiedError as error:
            raise driver_error(f"RuntimeError: {error}", call="await create_rollout()") from error
        finally:
            fleet.close()

    def _train(self, fleet: Fleet) -> None:
        parts = (self._settings, self._console, self._pace, self._curve)
        rollouts = Rollouts(*parts, fleet, self._hang)
        trainer = Trainer(*parts, self._hang)
        self._show_processes(fleet, trainer)
        for actor in (rollouts.actor, trainer.actor):
            self._import_warnings(actor)
        rollouts.announce()
        start = self._start(rollouts, trainer)
        if self._settings.eval_interval:
            self._activity(Activity.GENERATING)
            rollouts.evaluate(start)
        for rollout in range(start, self._settings.num_rollout):
            self._round(rollout, rollouts, trainer)
            self._show_processes(fleet, trainer)

    def _start(self, rollouts: Rollouts, trainer: Trainer) -> int:
        """Load, and push the first weights; the rollout to begin with."""
        self._pace.wait(2.0)
        loaded = trainer.load()
        if loaded.continues:
            rollouts.load(loaded.start_rollout - 1)
        trainer.timers.start("train_wait")
        self._update_weights(rollouts, trainer)
        return loaded.start_rollout

    def _round(self, rollout: int, rollouts: Rollouts, trainer: Trainer) -> None:
        if self._settings.faults.since("memory-floor", rollout):
            self._box.let_memory_fall()
        self._activity(Activity.GENERATING)
        plan = rollouts.generate(rollout)
        self._activity(Activity.TRAINING)
        trainer.train(rollout, plan)
        self._save_if_due(rollout, rollouts, trainer)
        self._update_weights(rollouts, trainer)
        if self._periodic(rollout, self._settings.eval_interval, last=False):
            self._activity(Activity.GENERATING)
            rollouts.evaluate(rollout)

    def _save_if_due(self, rollout: int, rollouts: Rollouts, trainer: Trainer) -> None:
        """Miles looks for the save trigger once a rollout, and removes it after everything."""
        asked = self._settings.save_trigger.exists()
        due = self._periodic(rollout, self._settings.save_interval, last=True)
        if not (asked or due or self._settings.faults.saves_at(rollout)):
            return
        self._activity(Activity.SAVING)
        trainer.save(rollout)
        rollouts.save(rollout)
        trainer.strike_save(rollout, Stage.DATA_SOURCE)
        if asked:
            try:
                self._settings.save_trigger.unlink()
            except OSError as error:
                raise driver_error(
                    f"{type(error).__name__}: {error}",
                    call="os.remove(args.save_trigger_sentinel)",
                ) from error

    def _periodic(self, rollout: int, interval: int, *, last: bool) -> bool:
        if not interval:
            return False
        is_last = last and rollout == self._settings.num_rollout - 1
        return is_last or (rollout + 1) % interval == 0

    def _update_weights(self, rollouts: Rollouts, trainer: Trainer) -> None:
        self._activity(Activity.UPDATING)
        trainer.sleep()
        rollouts.update_weights()
        trainer.update_weights()

    def _import_warnings(self, actor: Actor) -> None:
        for warning in _IMPORT_WARNINGS:
            self._console.actor(actor, warning)

    def _activity(self, activity: Activity) -> None:
        self._box.activity = activity

    def _hang(self) -> None:
        """Nothing more is asked of the GPU."""
        self._activity(Activity.HUNG)

    def _show_processes(self, fleet: Fleet, trainer: Trainer) -> None:
        self._box.processes = (
            (trainer.actor.pid, "ray::FSDPTrainRayActor.train", 31_205_621_760),
            *(
                (engine.process.pid, "sglang::scheduler", 38_654_705_664 // len(fleet.engines))
                for engine in fleet.engines
            ),
        )
