"""`milepost guard`: watch, tell and act when nobody looks; and what belongs to that."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

from tui.actions.desk import Desk
from tui.actions.launch import RefusedError
from tui.attach import found, has_target
from tui.cli.chosen import chosen_run, target_of
from tui.config import Config, load_config
from tui.errors import ExitCode, UsageError
from tui.guard.channels import Channel, NotToldError, channels_of
from tui.guard.decision import Policy, Terms
from tui.guard.export import Exporter, listen_address
from tui.guard.keeping import RunKeeper
from tui.guard.limits import Limits
from tui.guard.loop import run_guard
from tui.guard.notice import News, Notice
from tui.guard.notify import Notifier
from tui.guard.presence import Presence
from tui.guard.service import Service
from tui.model.launch import Attachment
from tui.model.snapshot import Level
from tui.model.text import harmless
from tui.runs.guard_card import pause, paused_by, unpause
from tui.runs.lock import LockHeldError
from tui.runs.state_dir import keep, run_folder, run_id
from tui.watch import monitor_of

if TYPE_CHECKING:
    from tui.cli.arguments import Arguments

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def guard(arguments: Arguments) -> int:
    """Watch until the run is over or a signal comes; or do what is asked for instead."""
    config = load_config(arguments.config)
    for warning in config.warnings:
        print(f"milepost: {harmless(warning)}", file=sys.stderr)
    if arguments.pause or arguments.unpause:
        return _pause(arguments)
    if arguments.uninstall:
        return _uninstall(arguments)
    channels = channels_of(
        (*config.guard.notify, *arguments.notify),
        config.guard.notify_command if arguments.notify_command is None else arguments.notify_command,
    )
    terms = _terms(arguments, config)
    if arguments.test_notify:
        return _test(channels)
    if arguments.install:
        return _install(arguments)
    return _Watch(arguments, config, terms, channels).run()


def _terms(arguments: Arguments, config: Config) -> Terms:
    name = arguments.act or config.guard.act
    try:
        policy = Policy(name)
    except ValueError:
        known = ", ".join(policy.value for policy in Policy)
        raise UsageError(f"there is no policy {name}", f"there are {known}") from None
    if config.read_only and policy is not Policy.NONE and not arguments.dry_run:
        raise UsageError(
            f"milepost is read-only by its configuration, and the policy {name} acts",
            "leave the policy out, or read_only",
        )
    return Terms(policy=policy, limits=Limits(**config.guard.limits))


class _Watch:
    """One guard at work."""

    def __init__(
        self,
        arguments: Arguments,
        config: Config,
        terms: Terms,
        channels: tuple[Channel, ...],
    ) -> None:
        self._arguments, self._config, self._terms = arguments, config, terms
        self._dry_run = arguments.dry_run
        self._channels = channels
        self._notifier = Notifier(() if self._dry_run else channels, host=os.uname().nodename)
        self._stop = threading.Event()
        self._signal = 0
        self._says = sys.stdout.isatty() or "JOURNAL_STREAM" in os.environ or self._dry_run

    def run(self) -> int:
        """Watch; the exit code."""
        
