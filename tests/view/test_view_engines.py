"""The engines pane: each state with its word, its reason and its ages."""

from __future__ import annotations

from dataclasses import replace

import fakes
import pytest
from fake_box import ENGINE_URL, NOW, ROUTER_URL, engine_verdict, generating_engine, router
from fake_run import verdict
from rows_read import lines, roles_of, text

from tui.model.engine import EngineState, EngineVerdict
from tui.model.reading import Absence, Unknown, known
from tui.model.snapshot import Snapshot
from tui.view import engines
from tui.view.rows import Look, Role, Row, plain

LOOK = Look()


def rows(snapshot: Snapshot, width: int = 100, height: int = 6) -> tuple[Row, ...]:
    return engines.rows(snapshot, width, height, LOOK)


def having(*verdicts: EngineVerdict, **changes: object) -> Snapshot:
    listed = tuple(engine.url for engine in verdicts)
    seen = {"router": router(workers=known(listed, NOW)), **changes}
    return fakes.running(verdict=verdict(engines=verdicts), **seen)


def numbered(count: int, **special: EngineVerdict) -> tuple[EngineVerdict, ...]:
    plain_ones = (
        generating_engine(label=str(i), url=f"http://192.0.2.2:{15000 + i}") for i in range(count)
    )
    return tuple(special.get(f"at_{i}", each) for i, each in enumerate(plain_ones))


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_paused_engine_is_no_alarm(width: int) -> None:
    assert lines(rows(fakes.running(), width)) == [
        "0  ○ paused   192.0.2.2:15000   weights v60",
        "   offloaded while training, for 41 s",
        "   last tokens 43 s ago, 3 120/s",
    ]
    assert roles_of(rows(fakes.running()), "paused") == {Role.PAUSED}


def test_a_working_engine_says_its_load() -> None:
    assert lines(rows(fakes.generating()))[2] == (
        "   tokens/s 3 120   running 48   queued 12   KV 72 %   last token 1 s ago   cache hits 61 %"
    )


def test_one_that_answers_nothing_is_told_with_its_age() -> None:
    silence = Unknown(why=Absence.TIMED_OUT, reason="no whole answer within 3 s", at=NOW - 8)
    snapshot = fakes.generating()
    tracks = tuple(
        replace(track, probe=replace(track.probe, metrics=silence)) for track in snapshot.engines
    )
    told = text(rows(replace(snapshot, engines=tracks)))
    assert "192.0.2.2:15000 answers nothing: no whole answer within 3 s, asked 8 s ago" in told


@pytest.mark.parametrize("state", EngineState)
def test_every_state_has_glyph_and_word(state: EngineState) -> None:
    told = lines(rows(having(engine_verdict(state=state, reason="because"))))
    sign, _, word = told[0][3:].partition(" ")
    assert len(sign) == 1
    assert word.startswith(state.value)
    assert told[1].startswith("   because")


def test_a_dead_engine_that_the_router_still_lists() -> None:
    told = text(rows(fakes.failed()))
    assert "✖ dead" in told
    assert "connection refused, for 5 min" in told
    assert "the router still lists engine 0; it lags" in told


def test_an_engine_that_the_router_does_not_list() -> None:
    lone = having(generating_engine(), router=router(workers=known(("http://other:1",), NOW)))
    assert "the router does not list engine 0" in text(rows(lone))
    three = having(*numbered(3), router=router(workers=known(("http://other:1",), NOW)))
    assert text(rows(three)).count("the router") == 1
    assert "the router does not list engine 0, 1, 2" in text(rows(three))


def test_a_router_that_lists_nothing_or_does_not_answer() -> None:
    silent = router(workers=Unknown(why=Absence.TIMED_OUT, reason="no answer in 2 s"))
    assert "router: no answer in 2 s" in text(rows(having(generating_engine(), router=silent)))
    none = router(url=ROUTER_URL, workers=known((), NOW))
    assert "router" not in text(rows(having(generating_engine(), router=none)))
    assert "router" not in text(rows(having(generating_engine(url=f"{ENGINE_URL}"), router=None)))


def test_a_probe_that_missed_is_told() -> None:
    late = having(
        generating_engine(), missed={"engines": Unknown(why=Absence.TIMED_OUT, reason="busy")}
    )
    assert "no fresh look at the engines: busy" in text(rows(late))


def test_an_engine_without_a_token_yet() -> None:
    told = text(rows(fakes.starting()))
    assert "◐ starting" in told
    assert "no token seen yet" in told
    fresh = having(generating_engine(tokens_moved_at=0.0))
    assert "no token seen yet" in text(rows(fresh))


def test_several_engines_have_fewer_lines_each() -> None:
    assert len(rows(having(*numbered(3)), 120, 6)) == 6
    one_line = lines(rows(having(*numbered(6)), 120, 6))
    assert one_line[5].startswith(
        "5  ● generating   192.0.2.2:15005   tokens move   tokens/s 3 120"
    )


def test_of_too_many_engines_the_worst_are_shown() -> None:
    dead = engine_verdict(label="7", url="", state=EngineState.DEAD, reason="refused")
    told = lines(rows(having(*numbered(9, at_7=dead)), 120, 4))
    assert [line[:1] for line in told[:3]] == ["0", "1", "7"]
    assert told[3] == "… 6 more:   ● 6 generating"


def test_the_title_counts_those_alive() -> None:
    dead = engine_verdict(label="1", state=EngineState.DEAD)
    assert engines.title(fakes.running(), LOOK) == "Engines · 1 of 1 alive"
    assert engines.title(having(*numbered(3, at_1=dead)), LOOK) == "Engines · 2 of 3 alive"
    assert engines.title(Snapshot(), LOOK) == "Engines"


@pytest.mark.parametrize("width", [40, 79])
def test_the_answer_in_a_line(width: int) -> None:
    assert plain(engines.summary(fakes.running(), width, LOOK)).startswith(
        "Engines ○ 1 paused  last tokens 43 s ago"
    )


def test_the_answer_in_a_line_names_the_worst() -> None:
    dead = engine_verdict(label="1", state=EngineState.DEAD, reason="connection refused")
    told = plain(engines.summary(having(*numbered(3, at_1=dead)), 100, LOOK))
    assert told.startswith("Engines ✖ 1 dead  ● 2 generating  engine 1: connection refused")
    assert plain(engines.summary(Snapshot(), 79, LOOK)) == "Engines none known yet"


def test_no_engine_yet() -> None:
    assert lines(rows(Snapshot())) == ["no engine known yet"]
