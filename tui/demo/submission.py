"""What `ray job submit` prints around a job (dashboard/modules/job/cli.py)."""

from __future__ import annotations

import shlex
import string
from secrets import choice

from tui.demo.console import Console
from tui.demo.lines import DEFAULT_COLOUR, GREEN, RED
from tui.demo.settings import Settings


def submit(settings: Settings, console: Console) -> str:
    """Everything up to the driver's first own word; the job's id."""
    job = "raysubmit_" + "".join(choice(string.ascii_letters + string.digits) for _ in range(16))
    console.cli(
        "INFO",
        "cli.py:42",
        "\x1b[37mJob submission server address\x1b[39m: \x1b[1mhttp://127.0.0.1:8265\x1b[22m",
    )
    _framed(console, "SUCC", 66, GREEN, f"Job '{job}' submitted successfully")
    console.cli("INFO", "cli.py:330", "\x1b[36mNext steps\x1b[39m")
    for line, said, verb in (
        (331, "Query the logs of the job:", "logs"),
        (335, "Query the status of the job:", "status"),
        (339, "Request the job to be stopped:", "stop"),
    ):
        console.cli("INFO", f"cli.py:{line}", said)
        console.cli("INFO", f"cli.py:{line + 2}", f"\x1b[1mray job {verb} {job}\x1b[22m")
    tailing = "Tailing logs until the job exits (disable with --no-wait):"
    console.cli("INFO", "cli.py:351", tailing)
    console.cli("INFO", "job_manager.py:581", "Runtime env is setting up.")
    entrypoint = shlex.join(("python3", "/root/miles/train.py", *settings.miles_argv()))
    console.driver(f"Running entrypoint for job {job}: {entrypoint}")
    _connect(settings, console)
    return job


def _connect(settings: Settings, console: Console) -> None:
    address = f"{settings.host}:6379"
    for place, said in (
        ("worker.py:1691", f"Using address {address} set in the environment variable RAY_ADDRESS"),
        ("worker.py:1841", f"Connecting to existing Ray cluster at address: {address}..."),
        (
            "worker.py:2029",
            "Connected to Ray cluster. View the dashboard at "
            "\x1b[1m\x1b[32mhttp://127.0.0.1:8265 \x1b[39m\x1b[22m",
        ),
    ):
        console.cli("INFO", place, said)


def close(console: Console, job: str, *, failed: bool) -> None:
    """The verdict; a failure repeats the end of the job's log."""
    closed = f"WebSocket closed for job {job} with close code 1000"
    console.cli("INFO", "sdk.py:520", closed)
    if not failed:
        _framed(console, "SUCC", 66, GREEN, f"Job '{job}' succeeded")
        return
    _framed(console, "ERR", 74, RED, f"Job '{job}' failed")
    console.cli(
        "INFO",
        "cli.py:89",
        "Status message: Job entrypoint command failed with exit code 1, "
        "last available logs (truncated to 20,000 chars):",
    )
    console.replay()


def _framed(console: Console, level: str, line: int, colour: str, said: str) -> None:
    rule = "-" * len(said)
    for offset, text in enumerate((rule, said, rule)):
        console.cli(level, f"cli.py:{line + offset}", f"{colour}{text}{DEFAULT_COLOUR}")
