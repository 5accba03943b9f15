"""`milepost guard`: watch, tell and act when nobody looks; and what belongs to that."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from tui.cli.backtesting import look_back
from tui.cli.chosen import chosen_run
from tui.config import Config, load_config
from tui.errors import ExitCode, UsageError
from tui.guard.channels import Channel, NotToldError, channels_of
from tui.guard.decision import Policy, Terms
from tui.guard.limits import Bounds
from tui.guard.notice import News, Notice
from tui.guard.service import Service
from tui.model.launch import Attachment, ListedRun
from tui.model.snapshot import Level
from tui.model.text import harmless
from tui.runs.guard_card import pause, unpause
from tui.runs.state_dir import keep, run_folder, run_id
from tui.watch import glanced

if TYPE_CHECKING:
    from tui.cli.arguments import Arguments


def guard(arguments: Arguments) -> int:
    """Watch until the run is over or a signal comes; or do what is asked for instead."""
    config = load_config(arguments.config)
    for warning in config.warnings:
        _say(f"milepost: {warning}", to_stderr=True)
    if arguments.pause or arguments.unpause:
        return _pause(arguments, config)
    if arguments.uninstall:
        return _uninstall(arguments, config)
    if arguments.backtest is not None:
        from tui.cli.backtesting import replayed

        return replayed(arguments, config)
    channels = _channels(arguments, config)
    if arguments.test_notify:
        return _test(channels, arguments.run or "milepost")
    terms = _terms(arguments, config)
    if arguments.install:
        return _install(arguments, config, terms)
    from tui.cli.on_guard import watch

    return watch(arguments, config, terms, channels)


def _channels(arguments: Arguments, config: Config) -> tuple[Channel, ...]:
    """Those of the configuration, and those that were typed."""
    typed, kept = arguments.notify_command, config.guard.notify_command
    command = kept if typed is None else typed
    return channels_of((*config.guard.notify, *arguments.notify), command)


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
    return Terms(policy=policy, bounds=Bounds(**config.guard.limits))


def _test(channels: tuple[Channel, ...], run: str) -> int:
    """Tell each channel something, and say what became of it."""
    if not channels:
        raise UsageError(
            "no channel is named", "with --notify, --notify-command, or [guard] of config.toml"
        )
    line = "this is a test: whoever reads this is told when something is wrong"
    notice = Notice(
        at=time.time(),
        run=harmless(run),
        news=News.SAID,
        level=Level.INFO,
        code="guard-test",
        line=line,
    )
    failed = 0
    for channel in channels:
        try:
            channel.send(notice, 0)
        except NotToldError as fault:
            failed += 1
            _say(f"{channel.name}  not told: {fault}")
        else:
            _say(f"{channel.name}  told")
    return int(ExitCode.ERROR if failed else ExitCode.WELL)


def _pause(arguments: Arguments, config: Config) -> int:
    folder = run_folder(_settled(arguments, config))
    if arguments.pause:
        pause(folder, "milepost guard --pause")
        _say(f"paused: no guard acts on {folder.name} until `milepost guard --unpause`")
    else:
        unpause(folder)
        _say(f"guards may act on {folder.name} again, as their policy allows")
    return int(ExitCode.WELL)


def _install(arguments: Arguments, config: Config, terms: Terms) -> int:
    attachment = _settled(arguments, config)
    if terms.policy is not Policy.NONE:
        look_back(attachment, config)
    keep(attachment)  # so that it is known by its id when nothing of it runs
    service = Service(run=run_id(attachment), options=_options(arguments))
    verb = "wrote" if service.install() else "is there already:"
    _say(f"{verb} {service.file}")
    for title, lines in (
        ("now run", service.next_steps()),
        ("or without systemd, one of", service.without_systemd()),
    ):
        _say(f"\n{title}:")
        for line in lines:
            _say(f"  {line}")
    return int(ExitCode.WELL)


def _uninstall(arguments: Arguments, config: Config) -> int:
    service = Service(run=run_id(_settled(arguments, config)))
    if not service.uninstall():
        _say(f"there is no {service.file}")
        return int(ExitCode.NOTHING_FOUND)
    _say(f"removed {service.file}; to end the one that runs:")
    _say(f"  systemctl --user daemon-reload && systemctl --user stop {service.name}")
    return int(ExitCode.WELL)


def _options(arguments: Arguments) -> tuple[str, ...]:
    """What was typed, as the unit repeats it."""
    if arguments.notify:
        raise UsageError(
            "everybody on this box can read the address of a channel in a unit's command line",
            'put notify = ["…"] under [guard] in config.toml, and chmod 600 that',
        )
    options: list[str] = []
    for flag, value in (
        ("--act", arguments.act),
        ("--notify-command", arguments.notify_command),
        ("--textfile", arguments.textfile and arguments.textfile.absolute()),
        ("--listen", arguments.listen),
        ("--config", arguments.config and arguments.config.absolute()),
    ):
        if value is not None:
            options += [flag, str(value)]
    return (*options, *(["--listen-anywhere"] if arguments.listen_anywhere else []))


def _settled(arguments: Arguments, config: Config) -> Attachment:
    """The run that is meant, with the save folder that its log names: it is known by that."""
    attachment = chosen_run(arguments)
    run = ListedRun(handle=attachment.name, attachment=attachment, state="")
    return glanced(run, config, at=time.time())[0].attachment


def _say(line: str, *, to_stderr: bool = False) -> None:
    print("\n".join(map(harmless, line.split("\n"))), file=sys.stderr if to_stderr else sys.stdout)
