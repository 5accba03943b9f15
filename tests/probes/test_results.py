"""Results of deep verifies beside a scan: for every checkpoint, and never a stale one for long."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest

from tui.checkpoints import ledger
from tui.checkpoints.verify import verify
from tui.model.checkpoint import Checkpoint, CheckpointState, CheckpointTree, Layout
from tui.probes.results import Results

COUNT = 40


@pytest.fixture
def folders(data: Path, tmp_path: Path) -> list[Path]:
    """Many checkpoints, the newest first, of which none was verified."""
    source = data / "captures" / "ckpt-run-a" / "iter_0000004" / "lr_scheduler"
    return [
        Path(shutil.copytree(source, tmp_path / f"iter_{number:07d}" / "lr_scheduler")).parent
        for number in range(COUNT, 0, -1)
    ]


def tree(folders: list[Path], *, tracked: Path | None = None) -> CheckpointTree:
    return CheckpointTree(
        root=str(folders[0].parent),
        checkpoints=tuple(
            Checkpoint(
                iteration=int(folder.name[-7:]),
                path=str(folder),
                layout=Layout.FSDP,
                state=CheckpointState.WHOLE,
                tracked=folder == tracked,
            )
            for folder in folders
        ),
    )


def verified(results: Results, folders: list[Path], **options: Path) -> set[str]:
    seen = results.beside(tree(folders, **options), time.time() + 60.0)
    return {Path(each.path).name for each in seen.checkpoints if each.verification is not None}


def names(folders: list[Path]) -> set[str]:
    return {folder.name for folder in folders}


def change(folder: Path) -> None:
    os.utime(folder / "lr_scheduler" / "__0_0.distcp", (1.0, 1.0))


def test_every_one_has_its_result_however_old(folders: list[Path]) -> None:
    for folder in folders[::3]:
        verify(folder)

    assert verified(Results(), folders) == names(folders[::3])


def test_a_verify_that_ends_is_seen_at_the_next_scan(folders: list[Path]) -> None:
    results = Results()
    assert verified(results, folders) == set()
    for folder in (folders[-1], folders[20]):
        verify(folder)
        assert folder.name in verified(results, folders)


def test_a_page_written_within_one_tick_of_a_scan_is_seen(folders: list[Path]) -> None:
    """The ledger's folder has the time that it had at the scan before."""
    results = Results()
    verify(folders[0])
    mark = ledger.ledger_folder().stat()
    results.beside(tree(folders), mark.st_mtime + 0.001)
    verify(folders[30])
    os.utime(ledger.ledger_folder(), ns=(mark.st_atime_ns, mark.st_mtime_ns))

    assert folders[30].name in verified(results, folders)


@pytest.mark.parametrize("place", [0, 5])
def test_a_change_of_a_new_one_voids_its_result_at_once(folders: list[Path], place: int) -> None:
    results = Results()
    verify(folders[place])
    assert verified(results, folders) == names([folders[place]])
    change(folders[place])

    assert verified(results, folders) == set()


def test_a_change_of_the_one_that_a_resume_loads_voids_its_result_at_once(
    folders: list[Path],
) -> None:
    results, loaded = Results(), folders[33]
    verify(loaded)
    assert verified(results, folders, tracked=loaded) == {loaded.name}
    change(loaded)

    assert verified(results, folders, tracked=loaded) == set()


def test_a_change_of_an_old_one_is_found_in_its_turn(folders: list[Path]) -> None:
    results = Results()
    for folder in folders:
        verify(folder)
    verified(results, folders)
    for folder in folders:
        change(folder)
    rounds = 0
    while verified(results, folders):
        rounds += 1
        assert rounds <= COUNT

    assert rounds > 1


def test_a_scan_looks_at_few_files_however_many_there_are(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = Results()
    for folder in folders:
        verify(folder)
    verified(results, folders)
    looked: Counter[str] = Counter()
    look = ledger.Recall.of

    def counted(self: ledger.Recall, home: Path) -> object:
        looked[home.name] += 1
        return look(self, home)

    monkeypatch.setattr(ledger.Recall, "of", counted)
    assert len(verified(results, folders)) == COUNT
    assert sum(looked.values()) <= 13


def test_those_that_are_gone_are_forgotten(folders: list[Path]) -> None:
    results = Results()
    verify(folders[0])
    verified(results, folders)

    assert verified(results, folders[1:]) == set()
