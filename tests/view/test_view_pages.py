"""What is printed or shown as a page: the report, the start screen, the row of keys."""

from __future__ import annotations

from dataclasses import replace

import fakes
import pytest
from fake_box import NOW
from fake_run import checkpoint, story, tree, verdict
from rows_read import line_with, lines, roles_of, text

from tui.model.checkpoint import CheckpointTree
from tui.model.progress import Moment
from tui.model.reading import Absence, Unknown, known
from tui.model.snapshot import Resume, ResumeProof, Snapshot
from tui.view import footer, report, start
from tui.view.rows import Look, Role, Row, plain

LOOK = Look()
HINTS = tuple(
    footer.Hint(key=key, label=label, rank=rank)
    for rank, (key, label) in enumerate(
        (("?", "help"), ("q", "quit"), ("1-6", "pane"), ("/", "filter"), ("z", "zoom"))
    )
)


def rows(snapshot: Snapshot, width: int = 100) -> tuple[Row, ...]:
    return report.rows(snapshot, width, LOOK)


def test_the_report_of_a_healthy_run() -> None:
    told = lines(rows(fakes.running()))
    assert told[0].startswith("run-a   ● RUNNING   rollout 61 of 200   actor_train 0:34 of ~0:41")
    assert "progress     actor_train 27/32, 3 s ago, at 14:02" in told
    assert "resume       fresh: started at rollout 0" in told
    assert "checkpoints  a crash now costs 6 rollouts, 14 min" in told
    assert "             ● 60 whole, a resume loads it, 7.1 GiB, 14 min old" in told
    assert "gpu          96 %  91 W  71 °C  left 37.5 of 121.7 GiB" in told
    assert "timeline     11:32:11 launched raysubmit_1" in told


def test_the_report_of_a_failure_gives_cause_evidence_and_advice() -> None:
    told = lines(rows(fakes.failed()))
    assert told[0].startswith("run-a   ✖ FAILED   rollout 61 of 200")
    at = told.index("cause        disk full while saving iter 80")
    assert told[at + 1] == "             · trainer: OSError: [Errno 28] No space left on device"
    assert "               → Free disk, then start again; a resume loads 60." in told
    assert "engines      ✖ 0 dead 192.0.2.2:15000 connection refused" in told
    assert "             failed for 5 min" in told


def test_the_report_of_a_stall_says_where_it_stands() -> None:
    told = text(rows(fakes.stalled()))
    assert "why          stalled in actor_train for 14 min (usual 0:41)" in told
    assert "in actor_train since 14 min" in told
    assert "GPU 0 % · no log line for 14 min · no disk write" in told


def test_degraded_codes_have_a_row_of_their_own() -> None:
    assert "degraded     checkpoint-partial" in text(rows(fakes.degraded()))


@pytest.mark.parametrize("outcome", [Resume.SILENT_FRESH, Resume.WRONG_NUMBER, Resume.INCOMPLETE])
def test_a_resume_that_went_wrong_is_bad(outcome: Resume) -> None:
    proof = ResumeProof(outcome=outcome, line="began at 0", evidence=("no tracker file",))
    told = rows(fakes.running(verdict=verdict(resume=proof)))
    assert roles_of(told, "began at 0") == {Role.BAD}
    assert "· no tracker file" in text(told)


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_every_word_is_there_at_every_width(width: int) -> None:
    told = " ".join(text(rows(fakes.failed(), width)).split())
    for part in ("✖ FAILED", "disk full", "[Errno", "connection refused", "raysubmit_1"):
        assert part in told or width == 20


def test_what_was_not_asked_is_not_in_the_report() -> None:
    told = text(rows(Snapshot()))
    assert "gpu" not in told
    assert "checkpoints" not in told
    assert "progress     none seen" in told


def test_a_folder_that_is_missing_or_empty_is() -> None:
    gone = Unknown(why=Absence.MISSING, reason="/ckpt does not exist")
    assert "? /ckpt does not exist" in text(rows(fakes.running(checkpoints=gone)))
    empty = known(CheckpointTree(root="/ckpt"), NOW)
    assert "none in /ckpt" in text(rows(fakes.running(checkpoints=empty)))


def test_long_lists_are_cut_with_a_count() -> None:
    many = known(tree(*(checkpoint(i) for i in range(60, 0, -5))), NOW)
    moments = tuple(Moment(at=NOW - 100 + i, text=f"moment {i}") for i in range(40))
    told = text(rows(fakes.running(checkpoints=many, story=story(timeline=moments))))
    assert "… 7 older" in told
    assert "… 28 earlier" in told
    assert told.endswith("moment 39")


def test_grave_moments_keep_their_level() -> None:
    grave = Moment(at=NOW, text="engine 0 killed", level="critical")
    told = rows(fakes.running(story=story(timeline=(grave,))))
    assert roles_of(told, "engine 0 killed") == {Role.BAD}


def test_what_was_looked_for_is_in_the_report_of_nothing() -> None:
    told = text(rows(fakes.empty()))
    assert "looked for   no container of Miles is running" in told


def test_the_start_screen_says_what_was_looked_for_and_what_to_do() -> None:
    told = text(start.rows(fakes.empty(), 100, 30, LOOK))
    for note in fakes.empty().attachment.notes:
        assert f"– {note}" in told
    assert "milepost demo" in told
    assert "milepost --log FILE" in told
    assert start.title(fakes.empty(), LOOK) == "No run found · looked at 14:02:11"


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_the_start_screen_fits(width: int) -> None:
    told = lines(start.rows(fakes.empty(), width, 40, LOOK))
    assert all(len(line) <= width for line in told)
    assert not any(line.endswith("…") for line in told)
    assert line_with(start.rows(fakes.empty(), width, 40, LOOK), "milepost demo")


def test_the_start_screen_without_notes_gives_the_reason() -> None:
    bare = replace(fakes.empty(), attachment=replace(fakes.empty().attachment, notes=()))
    assert "– no run was found" in text(start.rows(bare, 80, 30, LOOK))
    assert "nothing was found to watch" in plain(start.summary(bare, 80, LOOK))
    assert "nothing was looked for" in text(start.rows(Snapshot(), 80, 30, LOOK))


def test_the_keys_and_the_cost() -> None:
    row = footer.row(HINTS, 100, LOOK, cpu_ratio=0.0104, resident_bytes=41 * 2**20)
    told = plain(row)
    assert told.startswith(" ? help   q quit   1-6 pane   / filter   z zoom")
    assert told.endswith("1.0 %  41 MiB ")
    assert {span.text for span in row if span.role is Role.KEY} == {hint.key for hint in HINTS}


@pytest.mark.parametrize(
    ("width", "told"),
    [
        (40, " ? help  q quit  1-6 pane  / filter"),
        (16, " ? help  q quit"),
        (8, " ? help"),
        (3, " ?…"),
    ],
)
def test_keys_at_the_end_give_way(width: int, told: str) -> None:
    assert plain(footer.row(HINTS, width, LOOK, cpu_ratio=0.5)) == told


def test_the_order_is_kept_and_labels_shrink_before_hints_go() -> None:
    hints = (
        footer.Hint(key="s", label="save now", short="save", rank=2),
        footer.Hint(key="?", label="help", rank=1),
        footer.Hint(key="q", label="quit", rank=3),
    )
    for width, told in (
        (40, " s save now  ? help  q quit"),
        (25, " s save  ? help  q quit"),
        (18, " s save  ? help"),
        (10, " ? help"),
    ):
        assert plain(footer.row(hints, width, LOOK)) == told


def test_no_cost_known() -> None:
    assert plain(footer.row(HINTS, 100, LOOK)).endswith("z zoom")
