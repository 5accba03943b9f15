"""What a simulated run was asked to be: our flags, and those of Miles it understands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.demo import faults
from tui.demo.faults import Faults

_EPILOG = "faults:\n" + "\n".join(f"  {name:16} {text}" for name, text in faults.FAULTS.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One simulated run."""

    directory: Path
    speed: float
    seed: int
    faults: Faults
    num_rollout: int
    save_interval: int
    """0: never."""
    eval_interval: int
    """0: never."""
    save: Path
    load: Path
    save_trigger: Path
    hf_checkpoint: str
    host: str
    router_port: int
    engine_ports: tuple[int, ...]
    """One an engine; 0 is any free one."""
    colocate: bool
    fault_tolerance: bool
    rollout_batch_size: int
    n_samples_per_prompt: int
    global_batch_size: int
    model_mb: float
    leash: bool

    @property
    def base(self) -> Path:
        """Its own base model, which is written where no other is named."""
        return base_beside(self.save)

    @property
    def samples(self) -> int:
        return self.rollout_batch_size * self.n_samples_per_prompt

    @property
    def steps_per_rollout(self) -> int:
        return max(1, self.samples // self.global_batch_size)

    def miles_argv(self) -> tuple[str, ...]:
        """The arguments as the job's entrypoint line shows them."""
        argv = [
            *("--train-backend", "fsdp", "--hf-checkpoint", self.hf_checkpoint),
            *("--save", str(self.save), "--load", str(self.load)),
            *("--num-rollout", str(self.num_rollout)),
            *("--rollout-batch-size", str(self.rollout_batch_size)),
            *("--n-samples-per-prompt", str(self.n_samples_per_prompt)),
            *("--global-batch-size", str(self.global_batch_size)),
            *("--save-trigger-sentinel", str(self.save_trigger)),
        ]
        if self.save_interval:
            argv += ["--save-interval", str(self.save_interval)]
        if self.eval_interval:
            argv += ["--eval-interval", str(self.eval_interval)]
        argv += ["--colocate"] if self.colocate else []
        argv += ["--use-fault-tolerance"] if self.fault_tolerance else []
        return tuple(argv)


def base_beside(save: Path) -> Path:
    """On the same mount as the save folder, and no other run's."""
    return save.parent / f"{save.name}-base" / "Qwen3-0.6B"


def parsed(argv: Sequence[str]) -> Settings:
    """Settings from a command line; argparse ends the process on a wrong one."""
    parser = _parser()
    given = parser.parse_args(argv)
    directory = (given.dir or (given.save.parent if given.save else Path())).absolute()
    save = (given.save or directory / "checkpoints").absolute()
    load = (given.load or save).absolute()
    try:
        chosen = faults.parsed(given.fault)
    except faults.UnknownFaultError as error:
        parser.error(str(error))
    if chosen.chosen("fresh-start"):
        load = load.with_name(load.name + "-elsewhere")
    return Settings(
        directory=directory,
        speed=given.speed,
        seed=given.seed,
        faults=chosen,
        num_rollout=given.num_rollout,
        save_interval=given.save_interval,
        eval_interval=given.eval_interval,
        save=save,
        load=load,
        save_trigger=given.save_trigger_sentinel or directory / "save-now",
        hf_checkpoint=given.hf_checkpoint or str(base_beside(save)),
        host=given.host,
        router_port=given.router_port,
        engine_ports=given.engine_ports or (0,) * given.engines,
        colocate=given.colocate,
        fault_tolerance=given.use_fault_tolerance,
        rollout_batch_size=given.rollout_batch_size,
        n_samples_per_prompt=given.n_samples_per_prompt,
        global_batch_size=given.global_batch_size,
        model_mb=given.model_mb,
        leash=given.leash,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tui.demo",
        description="A simulated Miles run: its log, its checkpoints, its engines. No GPU.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_own(parser)
    _add_miles(parser)
    return parser


def _add_own(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--dir", type=Path, help="folder of the run (default: where --save lies)")
    add("--speed", type=_speed, default=1.0, help="1: a rollout takes about a minute")
    add("--seed", type=int, default=0)
    add("--fault", action="append", default=[], metavar="NAME[@ROLLOUT]", help="see below")
    add("--engines", type=int, default=1, help="how many, on free ports")
    add("--engine-ports", type=_ports, metavar="A,B", help="one engine each; 0: any free port")
    add("--host", default="127.0.0.1")
    add("--router-port", type=int, default=0)
    add("--model-mb", type=float, default=2.0, help="size of one checkpoint")
    add("--leash", action="store_true", help="end when the pipe on stdin closes")


def _add_miles(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("Miles").add_argument
    add("--save", type=Path)
    add("--load", type=Path, help="default: as --save")
    add("--save-interval", type=int, default=5, help="0: never")
    add("--eval-interval", type=int, default=10, help="0: never")
    add("--num-rollout", type=int, default=200)
    add("--save-trigger-sentinel", type=Path, metavar="PATH")
    add("--hf-checkpoint", help="default: a small model of its own")
    add("--train-backend", choices=("fsdp",), default="fsdp")
    add("--rollout-batch-size", type=int, default=16)
    add("--n-samples-per-prompt", type=int, default=8)
    add("--global-batch-size", type=int, default=64)
    add("--use-fault-tolerance", action="store_true")
    add("--colocate", action=argparse.BooleanOptionalAction, default=True)


def _speed(text: str) -> float:
    speed = float(text)
    if not speed > 0:
        raise argparse.ArgumentTypeError("the speed is above 0")
    return speed


def _ports(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))
