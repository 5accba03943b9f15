"""What a restart would load, and how often to save."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.model.checkpoint import (
    Checkpoint,
    CheckpointState,
    CheckpointTree,
    Layout,
    Soundness,
    Verification,
    Verifying,
)
from tui.model.events import VerifyAsked, VerifyTold
from tui.model.judge import judge
from tui.model.judge.interval import advice, optimum_s, waste_ratio
from tui.model.judge.would_load import would_load_of
from tui.model.launch import LaunchArgs
from tui.model.memory import GIB, Disk
from tui.model.progress import Clue, Ending, Progress, SaveRecord, Story
from tui.model.reading import Absence, Known, Reading, Unknown, known
from tui.model.reduce import reduce
from tui.model.snapshot import Alert, Level, Loads, Snapshot

NOW = 1_000_000.0
ARGV = ("python3", "train.py")


def checkpoint(iteration: int, **changes: object) -> Checkpoint:
    base = Checkpoint(
        iteration=iteration,
        path=f"/ckpt/iter_{iteration:07d}",
        layout=Layout.FSDP,
        state=CheckpointState.WHOLE,
        size_bytes=100,
        taken_at=NOW - 5000 + iteration,
        after_rollout=iteration - 1,
        resumes_at=iteration,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def seen(
    *checkpoints: Checkpoint,
    tracker: str | None = "60",
    launch: LaunchArgs = LaunchArgs(),
) -> Snapshot:
    reading: Reading[str] = Unknown(why=Absence.MISSING, reason="no tracker file")
    if tracker is not None:
        reading = known(tracker, NOW)
    tree = CheckpointTree(root="/ckpt", tracker=reading, checkpoints=checkpoints)
    story = Story(launch=launch, progress=Progress(at=NOW - 5, what="step"), last_line_at=NOW - 5)
    return Snapshot(now=NOW, checkpoints=known(tree, NOW), story=story)


def codes(snapshot: Snapshot) -> set[str]:
    return {alert.code for alert in judge(snapshot).alerts} - {"work-at-risk"}


def test_a_tracked_whole_checkpoint_is_loaded() -> None:
    snapshot = seen(checkpoint(60, tracked=True), checkpoint(40))
    loads = would_load_of(snapshot)

    assert (loads.loads, loads.iteration, loads.best) == (Loads.CHECKPOINT, 60, 60)
    assert loads.line == "a restart loads 60 and begins at rollout 60"
    assert codes(snapshot) == set()


@pytest.mark.parametrize(
    ("tracker", "loads", "words"),
    [
        (None, Loads.NOTHING, "begin fresh at rollout 0: no tracker file"),
        ("", Loads.FAILS, "the tracker is empty"),
        ("release", Loads.FAILS, "the tracker is 'release'"),
        ("sixty", Loads.FAILS, "no number"),
        ("80", Loads.FAILS, "says 80, which is not there"),
    ],
)
def test_what_the_tracker_says_is_what_miles_does(
    tracker: str | None, loads: Loads, words: str
) -> None:
    found = would_load_of(seen(checkpoint(60), tracker=tracker))

    assert found.loads is loads
    assert words in found.line
    assert found.best == 60


def test_release_is_a_base_model_for_megatron() -> None:
    found = would_load_of(seen(checkpoint(19, layout=Layout.MEGATRON), tracker="release"))

    assert found.loads is Loads.NOTHING
    assert "rollout 1" in found.line


def test_a_command_without_load_begins_fresh() -> None:
    snapshot = seen(
        checkpoint(60, tracked=True), launch=LaunchArgs(argv=ARGV, save="/ckpt", load=None)
    )

    assert would_load_of(snapshot).loads is Loads.NOTHING
    assert "load-missing" in codes(snapshot)


def test_a_command_that_loads_from_elsewhere_is_not_guessed_at() -> None:
    launch = LaunchArgs(argv=ARGV, save="/ckpt", load="/other")

    assert would_load_of(seen(checkpoint(60, tracked=True), launch=launch)).loads is Loads.UNKNOWN


def test_a_tracker_behind_what_is_whole() -> None:
    snapshot = seen(checkpoint(80), checkpoint(60, tracked=True))

    assert codes(snapshot) == {"tracker-behind"}


def test_a_tracker_that_comes_a_moment_later_is_no_news() -> None:
    snapshot = seen(checkpoint(80, taken_at=NOW - 3), checkpoint(60, tracked=True))

    assert codes(snapshot) == set()


@pytest.mark.parametrize("soundness", [Soundness.DAMAGED, Soundness.NOT_FINITE])
def test_a_tracked_checkpoint_that_is_not_sound(soundness: Soundness) -> None:
    bad = Verification(
        soundness=soundness, at=NOW - 60, faults=("optimizer/__0_0.distcp: bad sum",)
    )
    snapshot = seen(checkpoint(60, tracked=True, verification=bad), checkpoint(40))
    (alert,) = (each for each in judge(snapshot).alerts if each.code == "tracked-not-sound")

    assert soundness.value in alert.line
    assert alert.advice == "go back to 40"
    risk = judge(snapshot).risk
    assert risk is not None
    assert risk.checkpoint == 40


def test_missing_sums_are_no_damage() -> None:
    unsummed = Verification(soundness=Soundness.NO_SUMS, at=NOW - 60)

    assert codes(seen(checkpoint(60, tracked=True, verification=unsummed))) == set()


@pytest.mark.parametrize(
    ("save_s", "between_h", "minutes"),
    [(20, 24, 31), (60, 24, 54), (180, 24, 93), (60, 6.9, 29), (60, 72, 93)],
)
def test_the_optimum_is_near_youngs_table(save_s: float, between_h: float, minutes: float) -> None:
    assert optimum_s(save_s, between_h * 3600) / 60 == pytest.approx(minutes, abs=2.5)


@pytest.mark.parametrize(
    ("save_s", "between_h", "waste"),
    [(20, 24, 0.071), (60, 24, 0.074), (180, 24, 0.084), (60, 6.9, 0.248), (60, 72, 0.028)],
)
def test_the_waste_of_saving_every_twenty(save_s: float, between_h: float, waste: float) -> None:
    assert waste_ratio(20 * 600, save_s, between_h * 3600) == pytest.approx(waste, abs=0.002)


def test_the_plain_rule() -> None:
    """Steps of five minutes, one hour accepted: twelve of them, less the save itself."""
    found = advice(
        rollout_s=300, save_s=0.0, between_s=86400, is_given=True, limit_s=3600, interval=12
    )

    assert found.most == 12


@given(
    st.floats(1, 3600),
    st.floats(0.01, 600),
    st.floats(60, 1e7),
    st.floats(1, 1e5),
    st.integers(1, 100),
)
def test_advice_is_total_and_ordered(
    rollout_s: float, save_s: float, between_s: float, limit_s: float, interval: int
) -> None:
    found = advice(
        rollout_s=rollout_s,
        save_s=save_s,
        between_s=between_s,
        is_given=True,
        limit_s=limit_s,
        interval=interval,
    )

    assert 1 <= found.low <= found.high
    assert found.most >= 1
    assert found.waste_ratio is not None
    assert 0 <= found.best_waste_ratio <= 1


def test_a_save_under_way_in_a_scan_older_than_the_end_is_not_called_broken() -> None:
    under_way = checkpoint(80, state=CheckpointState.SAVING, reason="being written: meta.json")
    snapshot = seen(under_way, checkpoint(60, tracked=True))
    assert isinstance(snapshot.checkpoints, Known)
    ended = Story(attempt=1, steps_seen=80, ending=Ending(end="succeeded", detail="", at=NOW - 5))
    early = replace(snapshot.checkpoints, at=NOW - 6)

    assert "checkpoint-partial" in codes(replace(snapshot, story=ended))
    assert "checkpoint-partial" not in codes(replace(snapshot, story=ended, checkpoints=early))


def refused(*clues: str, saved_at: float | None = None, **disk: Any) -> Snapshot:
    """A run whose log holds these clues, on a disk with much room."""
    room = Disk(
        path="/ckpt",
        mount="/data",
        filesystem="nfs4",
        total_bytes=1000 * GIB,
        free_bytes=412 * GIB,
        inodes_free_ratio=0.9,
        read_only=False,
    )
    line = "OSError: [Errno 122] Disk quota exceeded: '/ckpt/iter_0000080/rng.pt'"
    story = Story(
        progress=Progress(at=NOW - 5, what="step"),
        last_line_at=NOW - 5,
        clues=tuple(Clue(kind=kind, line=line, source="trainer", at=NOW - 60) for kind in clues),
        saves=(SaveRecord(iteration=80, path="/ckpt", started_at=None, saved_at=saved_at),),
    )
    snapshot = seen(checkpoint(60, tracked=True))
    changed = replace(room, **disk)
    return replace(snapshot, story=story, disk=known(changed, NOW))


def disk_alerts(snapshot: Snapshot) -> dict[str, Alert]:
    found = {alert.code: alert for alert in judge(snapshot).alerts}
    return {code: alert for code, alert in found.items() if code.startswith("disk-")}


def test_a_quota_that_refuses_a_write_while_space_is_free_is_named() -> None:
    (alert,) = disk_alerts(refused("quota exceeded")).values()

    assert alert.code == "disk-quota"
    assert alert.level is Level.CRITICAL
    assert (
        alert.line == "the quota is used up: a write was refused, although /data has 412.0 GiB free"
    )
    assert "/ckpt/iter_0000080/rng.pt" in alert.evidence[0]


def test_it_is_named_without_knowing_the_disk_too() -> None:
    snapshot = replace(refused("quota exceeded"), disk=Unknown(why=Absence.MISSING))

    assert disk_alerts(snapshot)["disk-quota"].line == "the quota is used up: a write was refused"


def test_it_is_over_with_the_next_save_that_goes_well() -> None:
    assert "disk-quota" in disk_alerts(refused("quota exceeded", saved_at=NOW - 61))
    assert disk_alerts(refused("quota exceeded", saved_at=NOW - 59)) == {}


def test_a_full_disk_is_no_quota() -> None:
    assert disk_alerts(refused("disk full")) == {}


def test_it_is_named_as_the_cause_and_after_the_end() -> None:
    snapshot = refused("worker died", "disk full", "quota exceeded")
    failed = replace(snapshot.story, ending=Ending(end="failed", detail="", at=NOW - 1))
    verdict = judge(replace(snapshot, story=failed))

    assert verdict.cause is not None
    assert verdict.cause.line == "a write failed: the quota is used up"
    assert "disk-quota" in {alert.code for alert in verdict.alerts}


@pytest.mark.parametrize(
    ("disk", "code", "level"),
    [
        ({"read_only": True}, "disk-read-only", Level.CRITICAL),
        ({"inodes_free_ratio": 0.009}, "disk-inodes", Level.WARNING),
        ({"free_bytes": 119}, "disk-full-at-next-save", Level.CRITICAL),
        ({"free_bytes": 1000, "total_bytes": 20_000}, "disk-nearly-full", Level.WARNING),
    ],
)
def test_a_disk_that_will_refuse_the_next_save(
    disk: dict[str, Any], code: str, level: Level
) -> None:
    (alert,) = disk_alerts(refused(**disk)).values()

    assert (alert.code, alert.level) == (code, level)


@pytest.mark.parametrize(
    "disk",
    [
        {},
        {"inodes_free_ratio": 0.01},
        {"free_bytes": 120, "total_bytes": 1200},
        {"free_bytes": 2000, "total_bytes": 40_000},
    ],
)
def test_a_disk_with_room_is_no_news(disk: dict[str, Any]) -> None:
    assert disk_alerts(refused(**disk)) == {}


def test_a_verify_is_followed_from_its_beginning_to_its_end() -> None:
    asked = reduce(Snapshot(), VerifyAsked(at=1.0, path="/ckpt/iter_0000060"))
    assert asked.verifying == Verifying(path="/ckpt/iter_0000060", asked_at=1.0)
    half = replace(asked.verifying, done_bytes=1, total_bytes=2)
    told = reduce(asked, VerifyTold(at=2.0, asked_at=1.0, verifying=half))
    assert told.verifying == half

    assert reduce(told, VerifyTold(at=3.0, asked_at=1.0, verifying=None)).verifying is None
    assert reduce(told, VerifyAsked(at=3.0, path=None)).verifying is None


def test_what_is_told_of_an_earlier_verify_changes_nothing() -> None:
    first = reduce(Snapshot(), VerifyAsked(at=1.0, path="a"))
    second = reduce(first, VerifyAsked(at=2.0, path="a"))
    for late in (first.verifying, None):
        assert reduce(second, VerifyTold(at=3.0, asked_at=1.0, verifying=late)) == replace(
            second, now=3.0
        )
    none = reduce(second, VerifyAsked(at=4.0, path=None))
    assert (
        reduce(none, VerifyTold(at=5.0, asked_at=2.0, verifying=second.verifying)).verifying is None
    )
