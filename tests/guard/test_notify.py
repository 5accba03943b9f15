"""Notices reach their channels: once, again after a failure, never holding anybody, no secret told."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import fakes
import pytest
from fake_box import NOW
from fake_run import alert
from receivers import Hook, MailSink

from tui.errors import UsageError
from tui.guard import channels as kinds
from tui.guard.channels import Channel, NotToldError, channel_of, channels_of
from tui.guard.notice import RETURN_S, News, NewsDesk, Notice, notice_document, said
from tui.guard.notify import WAITING, Notifier
from tui.model.events import TimePassed
from tui.model.journal import Remark
from tui.model.reduce import ALERT_HOLD_S, ALERT_LOG_LIMIT, reduce
from tui.model.snapshot import Alert, AlertRecord, Level, Snapshot

DEADLINE_S = 200.0
NOTICE = Notice(
    at=NOW,
    run="run-a",
    news=News.BEGAN,
    level=Level.CRITICAL,
    code="stalled",
    line="no progress for 14 min",
    evidence=("GPU 0 %",),
    advice="resume it",
)
RUNNING = fakes.running()
needs_apprise = pytest.mark.skipif(
    importlib.util.find_spec("apprise") is None, reason="needs the notify extra"
)


def wait_until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def _no_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.guard.notify._PACE_S", 0.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook() as hook:
        yield hook


class Ear:
    """A channel whose answers a test says."""

    def __init__(self, *answers: Exception | None) -> None:
        self.name = "ear"
        self.answers = list(answers)
        self.heard: list[tuple[Notice, int]] = []
        self.asked = 0
        self.gate = threading.Event()
        self.gate.set()

    def send(self, notice: Notice, dropped: int) -> None:
        self.asked += 1
        assert self.gate.wait(DEADLINE_S)
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer
        self.heard.append((notice, dropped))

    def has_heard(self, count: int) -> bool:
        return len(self.heard) == count

    @property
    def lines(self) -> list[str]:
        return [notice.line for notice, _ in self.heard]


class Pauses(threading.Event):
    """Nobody waits: it is only written down for how long."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        return self.is_set()


def started(*channels: Channel, pause_s: float = 0.01) -> Any:
    notifier = Notifier(channels, host="spark-1", pause_s=pause_s)
    notifier.start()
    return closing(notifier)


def numbered(number: int, level: Level = Level.WARNING) -> Notice:
    return replace(NOTICE, line=str(number), level=level)


class TestNews:
    """What of the alerts is new."""

    def at(self, seconds: float, *alerts: Alert, cleared: tuple[Alert, ...] = ()) -> Snapshot:
        now = NOW + seconds
        records = [AlertRecord(alert=each, first_at=NOW, last_at=now, since=NOW) for each in alerts]
        records += [
            AlertRecord(alert=each, first_at=NOW, last_at=now, since=NOW, cleared_at=now)
            for each in cleared
        ]
        return replace(RUNNING, now=now, alert_log=tuple(records))

    def news(self, desk: NewsDesk, snapshot: Snapshot) -> list[str]:
        return [notice.news.value for notice in desk.of(snapshot)]

    def test_an_alert_is_told_once_and_when_it_is_over(self) -> None:
        desk, warning = NewsDesk(), alert()
        told = [self.news(desk, self.at(seconds, warning)) for seconds in (0, 1, 3600)]
        over = self.news(desk, self.at(3601, cleared=(warning,)))

        assert told == [["began"], [], []]
        assert over == ["cleared"]
        assert self.news(desk, self.at(3602, cleared=(warning,))) == []

    def test_it_is_told_again_when_it_is_worse_and_only_then(self) -> None:
        desk, warning = NewsDesk(), alert(level=Level.WARNING)
        worse = replace(warning, level=Level.CRITICAL, line="worse")
        steps = (warning, worse, warning, worse)
        assert [self.news(desk, self.at(n, each)) for n, each in enumerate(steps)] == [
            ["began"],
            ["worse"],
            [],
            [],
        ]

    def test_one_that_comes_and_goes_is_not_told_each_time(self) -> None:
        desk, warning = NewsDesk(), alert()
        told: list[str] = []
        for n in range(0, 3600, 60):
            told += self.news(desk, self.at(n, warning))
            told += self.news(desk, self.at(n + 30, cleared=(warning,)))
        assert 2 <= told.count("began") == told.count("cleared") <= 1 + 3600 / RETURN_S

    def test_two_subjects_are_two_alerts(self) -> None:
        one, other = alert(subject="0"), alert(subject="1")
        assert [n.subject for n in NewsDesk().of(self.at(0, one, other))] == ["0", "1"]

    def test_what_is_over_is_calm_and_advises_nothing(self) -> None:
        desk, critical = NewsDesk(), alert(level=Level.CRITICAL, advice="resume it")
        desk.of(self.at(0, critical))
        (over,) = desk.of(self.at(1, cleared=(critical,)))
        assert over.level is Level.INFO
        assert over.line.startswith("over: ")
        assert "resume it" not in over.text

    def test_ten_thousand_of_them_leave_no_trace(self) -> None:
        desk = NewsDesk()
        for n in range(10_000):
            desk.of(self.at(n, alert(subject=str(n))))
        assert len(desk._told) <= 512

    def remark(self, notice: Notice) -> Remark:
        return Remark(
            at=notice.at,
            code=notice.code,
            news=notice.news.value,
            level=notice.level,
            line=notice.line,
            subject=notice.subject,
        )

    def test_the_next_guard_goes_on_where_the_one_before_was_killed(self) -> None:
        before, next_one = NewsDesk(), NewsDesk()
        stands, ends, wrong = alert(subject="0"), alert(subject="1"), alert(subject="2")
        told = before.of(self.at(0, stands, ends))
        next_one.recall([*map(self.remark, told), self.remark(said(RUNNING, "guard-acts", "x"))])

        assert next_one.of(self.at(100)) == ()  # its monitor has not seen them yet
        assert self.news(next_one, self.at(103, stands, wrong)) == ["began"]
        (over,) = next_one.of(self.at(190, stands, wrong))
        assert (over.news, over.subject, over.line) == (News.CLEARED, "1", f"over: {ends.line}")

    def test_what_a_full_log_has_no_room_for_is_not_over(self) -> None:
        desk, old = NewsDesk(), alert(subject="old")
        desk.of(self.at(0, old))
        others = [alert(subject=str(n)) for n in range(ALERT_LOG_LIMIT)]
        assert "cleared" not in self.news(desk, self.at(100, *others))
        assert self.news(desk, self.at(101, old, *others[1:])) == []

    def test_it_follows_the_alert_log_of_a_run(self) -> None:
        desk, snapshot = NewsDesk(), fakes.running(alert_log=())
        told: list[Notice] = []
        for seconds in (0.0, 1.0, ALERT_HOLD_S + 2.0):
            snapshot = reduce(snapshot, TimePassed(at=NOW + seconds))
            told += desk.of(snapshot)
        assert len(told) == len({(n.code, n.subject) for n in told})

    def test_secrets_and_escapes_are_not_told(self) -> None:
        line = "\x1b[31mEXEC: train.py --wandb-key 0123456789abcdef0123456789abcdef01234567"
        notice = said(fakes.running(), "guard-test", line)
        assert "0123456789" not in json.dumps(notice_document(notice))
        assert "\x1b" not in notice.line


class TestNotifier:
    """Each channel on its own, in order, tried again."""

    def test_each_channel_is_told_in_order_and_which_box_it_is(self) -> None:
        one, other = Ear(), Ear()
        with started(one, other) as notifier:
            for n in range(5):
                notifier.tell(numbered(n))
            wait_until(lambda: len(one.heard) == len(other.heard) == 5)
        assert one.lines == other.lines == list("01234")
        assert one.heard[0][0].title == "run-a on spark-1: stalled"

    def test_what_fails_is_tried_again_each_time_later(self) -> None:
        ear, pauses = Ear(*[NotToldError("no")] * 11), Pauses()
        notifier = Notifier((ear,), pause_s=2.0)
        notifier._posts[0]._closing = pauses
        notifier.start()
        notifier.tell(NOTICE)
        wait_until(lambda: ear.heard)
        notifier.close()
        assert pauses.seconds[:11] == [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]

    def test_a_channel_that_hangs_holds_nobody_and_keeps_the_newest(self) -> None:
        stuck, other = Ear(), Ear()
        stuck.gate.clear()
        with started(stuck, other) as notifier:
            notifier.tell(numbered(-1))
            wait_until(lambda: stuck.asked == 1)
            for n in range(WAITING + 10):
                notifier.tell(numbered(n))
                wait_until(partial(other.has_heard, n + 2))
            stuck.gate.set()
            wait_until(lambda: len(stuck.heard) == WAITING + 1)
        assert stuck.lines[1:] == [str(n) for n in range(10, WAITING + 10)]
        assert [dropped for _, dropped in stuck.heard[:3]] == [0, 10, 0]

    def test_of_too_many_the_critical_ones_stay(self) -> None:
        ear = Ear()
        ear.gate.clear()
        with started(ear) as notifier:
            notifier.tell(numbered(-1))
            wait_until(lambda: ear.asked == 1)
            notifier.tell(numbered(0, Level.CRITICAL))
            for n in range(1, WAITING + 5):
                notifier.tell(numbered(n))
            ear.gate.set()
            wait_until(lambda: len(ear.heard) == WAITING + 1)
        assert ear.lines[1] == "0"

    def test_what_a_channel_refuses_for_ever_does_not_hold_up_the_next(self) -> None:
        ear = Ear(*[NotToldError("413")] * 12)
        with started(ear, pause_s=0.0) as notifier:
            notifier.tell(numbered(0))
            notifier.tell(numbered(1))
            wait_until(lambda: ear.heard)
        assert ear.heard == [(replace(numbered(1), host="spark-1"), 1)]

    def test_a_channel_with_a_bug_goes_on_and_its_words_are_not_told(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        ear = Ear(ValueError("https://hooks.example/T0PS3CRET"))
        with caplog.at_level(logging.INFO, "milepost"), started(ear) as notifier:
            notifier.tell(NOTICE)
            wait_until(lambda: ear.heard)
        assert "ear: not told: ValueError" in caplog.text
        assert "T0PS3CRET" not in caplog.text

    def test_what_is_wrong_with_a_channel_is_told_while_it_is(self) -> None:
        ear = Ear(NotToldError("no route"))
        with started(ear, pause_s=0.2) as notifier:
            assert notifier.channels == ("ear",)
            notifier.tell(NOTICE)
            wait_until(lambda: notifier.channels == ("ear: not told: no route",))
            wait_until(lambda: notifier.channels == ("ear",))

    def test_the_end_tries_once_what_waits_and_does_not_wait_for_ever(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tui.guard.notify._CLOSE_S", 0.2)
        stuck, well = Ear(), Ear()
        stuck.gate.clear()
        notifier = Notifier((stuck, well))
        notifier.start()
        for n in range(3):
            notifier.tell(numbered(n))
        notifier.close()
        assert well.lines == ["0", "1", "2"]
        assert stuck.heard == []
        stuck.gate.set()

    def test_one_that_was_never_started_can_be_closed(self) -> None:
        Notifier((Ear(),)).close()


class TestWebhook:
    """JSON by POST."""

    def test_it_gets_the_notice(self, hook: Hook) -> None:
        channel_of(hook.url).send(NOTICE, 2)
        (body,) = hook.received
        assert (body["milepost"], body["code"], body["level"]) == (1, "stalled", "critical")
        assert body["evidence"] == ["GPU 0 %"]
        assert body["dropped"] == 2
        assert body["text"].startswith("run-a: stalled\nno progress for 14 min\n")
        assert "2 before this could not be told" in body["text"]

    @pytest.mark.parametrize("status", [400, 404, 500, 503])
    def test_a_refusal_says_its_status(self, hook: Hook, status: int) -> None:
        hook.status = status
        with pytest.raises(NotToldError, match=f"status {status}"):
            channel_of(hook.url).send(NOTICE, 0)

    def test_a_redirect_is_a_refusal_and_is_not_followed(self, hook: Hook) -> None:
        hook.status, hook.location = 302, hook.url
        with pytest.raises(NotToldError, match="status 302"):
            channel_of(hook.url).send(NOTICE, 0)
        assert hook.asked == 1

    def test_nobody_there(self) -> None:
        with pytest.raises(NotToldError, match="refused"):
            channel_of("http://127.0.0.1:1/hook").send(NOTICE, 0)

    def test_through_the_notifier_once_it_answers_again(self, hook: Hook) -> None:
        hook.status = 503
        with started(channel_of(hook.url), pause_s=0.05) as notifier:
            notifier.tell(NOTICE)
            wait_until(lambda: hook.asked >= 2)
            hook.status = 204
            wait_until(lambda: hook.received)
            notifier.tell(numbered(1))
            wait_until(lambda: len(hook.received) == 2)
        assert [body["line"] for body in hook.received] == ["no progress for 14 min", "1"]


class TestCommand:
    """JSON on standard input."""

    def told_by(self, script: str, *argv: str) -> None:
        words = " ".join((sys.executable, "-c", f"'{script}'", *argv))
        (channel,) = channels_of((), words)
        channel.send(NOTICE, 0)

    def test_it_gets_the_notice(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        self.told_by(f'import sys; open("{out}", "w").write(sys.stdin.read())')
        assert json.loads(out.read_text())["code"] == "stalled"

    def test_its_last_words_are_told_without_its_arguments(self) -> None:
        script = 'import sys; sys.exit("cannot reach " + sys.argv[1])'
        with pytest.raises(NotToldError) as refused:
            self.told_by(script, "hunter22")
        assert str(refused.value) == "exit code 1: cannot reach •••"

    def test_one_that_does_not_end_is_ended(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(kinds, "COMMAND_S", 0.2)
        with pytest.raises(NotToldError, match=r"no end within 0\.2 s"):
            self.told_by("import time; time.sleep(60)")

    def test_a_child_that_it_leaves_behind_holds_nobody(self, tmp_path: Path) -> None:
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        self.told_by(f'import os; os.fork() or open("{fifo}").read()')
        fifo.write_text("go")

    def test_no_such_command(self) -> None:
        with pytest.raises(NotToldError, match="No such file"):
            channels_of((), "/no/such/command")[0].send(NOTICE, 0)

    @pytest.mark.parametrize("command", ["'", "   "])
    def test_what_is_no_command(self, command: str) -> None:
        with pytest.raises(UsageError):
            channels_of((), command)


class TestNames:
    """What of an address may be shown."""

    @pytest.mark.parametrize(
        ("url", "name"),
        [
            ("https://hooks.example.org/services/T0PS3CRET", "https://hooks.example.org/•••"),
            ("http://me:T0PS3CRET@127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("https://example.org/?key=T0PS3CRET", "https://example.org/•••"),
        ],
    )
    def test_of_a_webhook(self, url: str, name: str) -> None:
        assert channel_of(url).name == name

    @pytest.mark.parametrize(
        "url", ["T0PS3CRET", "https:///T0PS3CRET", "http://h:T0PS3CRET/x", "http://a b/T0PS3CRET"]
    )
    def test_what_is_no_address_is_refused_without_it(self, url: str) -> None:
        with pytest.raises(UsageError) as refused:
            channel_of(url)
        assert "T0PS3CRET" not in str(refused.value)

    def test_the_same_address_twice_is_one_channel(self) -> None:
        url = "http://127.0.0.1:1/hook"
        assert len(channels_of((url, url))) == 1

    def test_without_apprise_other_addresses_are_refused_with_the_remedy(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "apprise", None)
        kinds._apprise.cache_clear()
        with pytest.raises(UsageError) as refused:
            channel_of("ntfy://T0PS3CRET")
        assert refused.value.remedy == "pip install 'milepost[notify]'"
        assert "T0PS3CRET" not in str(refused.value)


@needs_apprise
@pytest.mark.notify
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what it imports
class TestApprise:
    """Everything else."""

    def test_a_mail(self) -> None:
        with MailSink() as sink:
            to = f"127.0.0.1:{sink.port}?from=guard@example.org&to=me@example.org&mode=insecure"
            with started(channel_of(f"mailto://{to}")) as notifier:
                notifier.tell(NOTICE)
                wait_until(lambda: sink.mails)
        (mail,) = sink.mails
        assert "Subject: run-a on spark-1: stalled" in mail
        assert "no progress for 14 min" in mail
        assert "do: resume it" in mail

    @pytest.mark.parametrize(
        "url",
        [
            "ntfy://127.0.0.1:1/T0PS3CRET",
            "json://me:T0PS3CRET@127.0.0.1:1/T0PS3CRET",
            "mailto://me:T0PS3CRET@127.0.0.1:1?from=a@example.org&to=T0PS3CRET@example.org",
            "nonsense://T0PS3CRET",
            "tgram://T0PS3CRET",
        ],
    )
    def test_a_failure_says_why_and_shows_nothing_of_the_address(
        self, url: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
    ) -> None:
        with (
            caplog.at_level(logging.WARNING),
            pytest.raises((NotToldError, UsageError)) as refused,
        ):
            channel_of(url).send(NOTICE, 0)
        told = capfd.readouterr()
        shown = f"{refused.value} {caplog.text} {told.out} {told.err}"
        assert "T0PS3CRET" not in shown
        assert "does not say why" not in shown

    def test_its_name_is_its_scheme(self) -> None:
        assert channel_of("ntfys://T0PS3CRET").name == "ntfys://•••"
