"""A guard at work: put together, ended by a signal or by the run's own end."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from tui.actions.desk import Desk
from tui.actions.launch import RefusedError
from tui.attach import Target, found, has_target
from tui.cli.backtesting import look_back
from tui.cli.chosen import target_of
from tui.config import Config
from tui.errors import UsageError
from tui.guard.channels import Channel
from tui.guard.decision import Policy, Terms
from tui.guard.export import Exporter, listen_address
from tui.guard.keeping import RunKeeper
from tui.guard.loop import run_guard
from tui.guard.notice import Notice
from tui.guard.notify import Notifier
from tui.guard.presence import Presence, Unseen
from tui.guard.seams import Seen
from tui.model.launch import Attachment
from tui.model.snapshot import Snapshot
from tui.model.text import harmless
from tui.runs.guard_card import paused_by
from tui.runs.lock import LockHeldError
from tui.runs.state_dir import run_folder
from tui.watch import monitor_of

if TYPE_CHECKING:
    from tui.cli.arguments import Arguments

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SIGNALLED = 128
_LOG = logging.getLogger("milepost")


def watch(arguments: Arguments, config: Config, terms: Terms, channels: tuple[Channel, ...]) -> int:
    """Guard the run until it is over, or a signal comes; the exit code.

    Raises:
        RefusedError: another guard watches it.
        UsageError: there are several runs, and none was named.
    """
    with suppress(OSError):  # launch scripts end processes by name, `python` first among them
        Path("/proc/self/comm").write_text("milepost", encoding="utf-8")
    target, dry_run = target_of(arguments), arguments.dry_run
    attachment = _attachment(target)
    told = () if dry_run else channels
    notifier = Notifier(told, host=os.uname().nodename)
    presence: Seen = Unseen()
    if not dry_run:
        presence = Presence(terms.policy.value, time.time(), lambda: notifier.channels)
    teller = _Teller(notifier, presence, aloud=dry_run or _somebody_reads())
    monitor = monitor_of(attachment, config, at=time.time(), target=target)
    ended = _Ended()
    with ExitStack() as stack:
        keeper, shower = _kept(arguments, stack, dry_run=dry_run)
        notifier.start()
        stack.callback(notifier.close)
        _greet(attachment, terms, channels, dry_run=dry_run)
        if terms.policy is not Policy.NONE and sys.stdout.isatty():
            look_back(attachment, config)
        try:
            code = run_guard(
                monitor,
                terms,
                desk=Desk(lambda: monitor.latest, read_only=config.read_only),
                teller=teller,
                keeper=keeper,
                shower=shower,
                presence=presence,
                stop=ended.stop,
                dry_run=dry_run,
            )
        except LockHeldError as held:
            told_by = f"{held.holder}, watches this run already"
            raise RefusedError(told_by, "`milepost status` tells of it") from held
    return _SIGNALLED + ended.by if ended.by else code


def _attachment(target: Target) -> Attachment:
    """What there is of the run now; the rest, or all of it, may come later."""
    finding = found(target, at=time.time(), past=True)
    alive = [run.handle for run in finding.choices if run.state != "gone"]
    if len(alive) > 1 and not has_target(finding.attachment):
        raise UsageError(f"there are {len(alive)} runs on this machine: {', '.join(alive)}")
    return finding.attachment


def _kept(
    arguments: Arguments, stack: ExitStack, *, dry_run: bool
) -> tuple[RunKeeper | _Nobody, Exporter | _Nobody]:
    """The black box and the metrics; neither where nothing is to be written."""
    if dry_run:
        return _Nobody(), _Nobody()
    listen = None
    if arguments.listen is not None:
        listen = listen_address(arguments.listen, anywhere=arguments.listen_anywhere)
    keeper, shower = RunKeeper(), Exporter(textfile=arguments.textfile, listen=listen)
    shower.start()
    stack.callback(shower.close)
    stack.callback(keeper.close)
    return keeper, shower


class _Nobody:
    """Keeps and shows nothing."""

    def record(self, snapshot: Snapshot) -> None:
        """Not kept."""

    def export(self, snapshot: Snapshot) -> None:
        """Not shown."""


class _Teller:
    """What is new goes to the channels, into the guard's log, and stays as its last words."""

    def __init__(self, notifier: Notifier, presence: Seen, *, aloud: bool) -> None:
        self._notifier, self._presence, self._aloud = notifier, presence, aloud

    def tell(self, notice: Notice) -> None:
        """Any thread."""
        self._notifier.tell(notice)
        self._presence.say(f"{notice.code}: {notice.line}", notice.at)
        _LOG.info("%s %s: %s", notice.news.value, notice.code, notice.line)
        if self._aloud:
            moment = time.strftime("%H:%M:%S", time.localtime(notice.at))
            lines = (notice.line, *notice.evidence)
            _say(f"{moment}  {notice.code}: " + "\n          ".join(lines))


class _Ended:
    """Set by a signal. One that was ignored when we began, as under nohup, stays so."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.by = 0
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._take)

    def _take(self, number: int, _: FrameType | None) -> None:
        self.by = number
        self.stop.set()


def _greet(
    attachment: Attachment, terms: Terms, channels: tuple[Channel, ...], *, dry_run: bool
) -> None:
    names = ", ".join(channel.name for channel in channels)
    name = attachment.name if has_target(attachment) else "the run that starts next"
    acts = "would act by" if dry_run else "acts by"
    _say(f"guard of {name}: {acts} policy {terms.policy.value}; tells {names or 'nobody'}")
    paused = paused_by(run_folder(attachment)) if has_target(attachment) else ""
    if paused:
        _say(f"paused by {paused}: it does not act until `milepost guard --unpause`")


def _somebody_reads() -> bool:
    """A person, or the journal of systemd; a file would only grow."""
    return sys.stdout.isatty() or "JOURNAL_STREAM" in os.environ


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # whoever read it has gone
        print("\n".join(map(harmless, text.split("\n"))), flush=True)
