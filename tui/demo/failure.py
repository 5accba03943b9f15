"""How a run ends badly: the driver's last words, as Ray and Python print them."""

from __future__ import annotations

import secrets

from tui.demo.lines import CYAN, DEFAULT_COLOUR, RESET, YELLOW, Actor

_DETAIL = (
    "Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a "
    "connection error code 2. End of file. Some common causes include: (1) the process was "
    "killed by the OOM killer due to high memory usage, (2) ray stop --force was called, or "
    "(3) the worker crashed unexpectedly due to SIGSEGV or another unexpected error. If the "
    "process was killed by the kernel OOM killer (verifiable by checking for OOM in dmesg of "
    "the OOMing node), consider enabling resource isolation via --enable-resource-isolation "
    "to prevent node deaths by resource contention and significant loss of progress by "
    "uninformed kernel OOM killing."
)


class JobFailedError(Exception):
    """The driver ended with a traceback."""

    def __init__(self, *words: str) -> None:
        super().__init__(words[-1])
        self.words = words


def actor_died(actor: Actor, call: str, ip: str) -> JobFailedError:
    """A worker process is gone. Ray guesses at three causes, always the same ones."""
    raylet = (
        f"{YELLOW}(raylet){RESET} A worker died or was killed while executing a task by an "
        "unexpected system error. To troubleshoot the problem, check the logs for the dead worker. "
        f"Lease ID: {secrets.token_hex(28)} Worker ID: {secrets.token_hex(28)} "
        f"Node ID: {secrets.token_hex(28)} Worker IP address: {ip} Worker port: 14240 "
        f"Worker PID: {actor.pid} {_DETAIL}"
    )
    return JobFailedError(
        raylet,
        *_driver_frames(call),
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
        f"\tclass_name: {actor.kind}",
        f"\tactor_id: {secrets.token_hex(16)}",
        f"\tpid: {actor.pid}",
        "\tnamespace: c9eb395d-2d98-46f3-998c-e1646da917b0",
        f"\tip: {ip}",
        f"The actor is dead because its worker process has died. {_DETAIL}",
    )


def task_error(
    actor: Actor, method: str, ip: str, error: str, *, call: str, remote: tuple[str, ...]
) -> JobFailedError:
    """A call to a worker raised; `remote` is the worker's own traceback, ending in `error`."""
    kind = error.partition(":")[0].rpartition(".")[2]
    where = f"{CYAN}ray::{actor.kind}.{method}(){DEFAULT_COLOUR}"
    return JobFailedError(
        *_driver_frames(call),
        f"ray.exceptions.RayTaskError({kind}): {where} (pid={actor.pid}, ip={ip}, "
        f"actor_id={secrets.token_hex(16)}, repr=<{actor.kind} object at 0x{0xFFFF12345678:x}>)",
        *remote,
        error,
    )


def driver_error(error: str, *, call: str) -> JobFailedError:
    """The driver itself raised."""
    return JobFailedError(*_driver_frames(call), error)


def _driver_frames(call: str) -> tuple[str, ...]:
    return (
        "Traceback (most recent call last):",
        '  File "/root/miles/train.py", line 155, in <module>',
        "    asyncio.run(train(args))",
        '  File "/usr/lib/python3.12/asyncio/runners.py", line 190, in run',
        "    return runner.run(main)",
        "           ^^^^^^^^^^^^^^^^",
        '  File "/usr/lib/python3.12/asyncio/base_events.py", line 653, in run_until_complete',
        "    return future.result()",
        "           ^^^^^^^^^^^^^^^",
        '  File "/root/miles/train.py", line 118, in train',
        f"    {call}",
    )
