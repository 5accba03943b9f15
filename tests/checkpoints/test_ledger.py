"""What verifies remember, and what happens to it."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest

from tui.checkpoints.ledger import keep, page_of, page_path, remembered
from tui.checkpoints.ledger_pages import Digest, NotALedgerError, Result, parsed
from tui.checkpoints.plan import FileIdentity
from tui.checkpoints.verify import verify
from tui.model.checkpoint import Soundness, Verification

IDENTITY = FileIdentity(size_bytes=1, mtime_ns=2, inode=3)
SOUND = Verification(
    soundness=Soundness.SOUND, at=5.0, seconds=1.5, checked_bytes=9, faults=("a",), non_finite=1
)


@pytest.fixture
def folder(data: Path, tmp_path: Path) -> Path:
    root = shutil.copytree(data / "captures" / "ckpt-run-a", tmp_path / "run-a")
    return Path(root) / "iter_0000004"


def digest(text: str) -> Digest:
    return Digest(identity=IDENTITY, digest=text, since=4.5)


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    result = Result(verification=SOUND, files={"x": IDENTITY, "../é\udc80": IDENTITY})
    assert keep(tmp_path, {"x": digest("one")}, result) == ""

    page = page_of(tmp_path)
    assert page.digests == {"x": digest("one")}
    assert page.result == result
    assert not page.note


def test_digests_add_up_and_the_last_result_stays(tmp_path: Path) -> None:
    result = Result(verification=SOUND, files={})
    keep(tmp_path, {"x": digest("one"), "y": digest("two")}, result)
    keep(tmp_path, {"y": digest("three")}, None)

    page = page_of(tmp_path)
    assert page.digests == {"x": digest("one"), "y": digest("three")}
    assert page.result == result


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    def write(number: int) -> None:
        for turn in range(10):
            assert keep(tmp_path, {f"{number}-{turn}": digest("x")}, None) == ""

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(page_of(tmp_path).digests) == 40
    assert [path.suffix for path in page_path(tmp_path).parent.iterdir()] == [".json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"version": 2}',
        '{"version": 1}',
        '{"version": 1, "files": [], "result": null}',
        '{"version": 1, "files": {"x": 1}, "result": null}',
        '{"version": 1, "files": {"x": {"size_bytes": true, "mtime_ns": 1, "inode": 1, '
        '"digest": "", "since": 1}}, "result": null}',
        '{"version": 1, "files": {}, "result": {"verification": {"soundness": "odd"}}}',
        "[" * 100_000,
    ],
)
def test_a_damaged_page_is_set_aside_and_said_so(tmp_path: Path, text: str) -> None:
    path = page_path(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(text)

    assert remembered(tmp_path) is None
    assert "set aside" in page_of(tmp_path).note
    assert path.with_suffix(".damaged-1").read_text() == text
    with pytest.raises(NotALedgerError):
        parsed(text)


def test_a_verify_says_that_its_ledger_was_damaged(folder: Path) -> None:
    verify(folder)
    page_path(folder).write_text("{")
    result = verify(folder)

    assert result.is_good
    assert "was damaged and was set aside" in result.notes[0]
    assert remembered(folder) == result.verification


def test_a_ledger_that_cannot_be_written_costs_only_the_memory(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    result = verify(folder)

    assert result.is_good
    assert any("ledger cannot be written" in note for note in result.notes)


class TestRemembered:
    def test_as_long_as_nothing_changes(self, folder: Path) -> None:
        assert remembered(folder) is None
        result = verify(folder)

        assert remembered(folder) == result.verification

    @pytest.mark.parametrize(
        "name", ["model/.metadata", "rng.pt", "../rollout/global_dataset_state_dict_3.pt"]
    )
    def test_void_when_a_file_is_touched_replaced_or_gone(self, folder: Path, name: str) -> None:
        path = folder / name
        verify(folder)
        path.touch()
        assert remembered(folder) is None

        verify(folder)
        raw = path.read_bytes()
        path.unlink()
        assert remembered(folder) is None
        path.write_bytes(raw)
        assert remembered(folder) is None

    def test_void_when_a_file_is_added(self, folder: Path) -> None:
        verify(folder)
        (folder / "model/__1_0.distcp").touch()
        assert remembered(folder) is None

    def test_a_part_alone_is_not_the_result_of_the_whole(self, folder: Path) -> None:
        verify(folder / "model")
        assert remembered(folder) is None


class TestComparing:
    def test_a_shard_of_an_older_save_is_named(self, folder: Path) -> None:
        """All its sums are right and its size is the same: only the ledger can tell."""
        older = folder.parent / "iter_0000002/model/__0_0.distcp"
        assert verify(folder).is_good
        shutil.copy2(older, folder / "model/__0_0.distcp")
        result = verify(folder)

        (fault,) = result.faults
        assert fault.startswith("model/__0_0.distcp: not the file that was verified at ")
        assert "though model/.metadata still is" in fault

    def test_a_part_verified_alone_is_known_to_the_whole(self, folder: Path) -> None:
        older = folder.parent / "iter_0000002/model/__0_0.distcp"
        verify(folder / "model")
        shutil.copy2(older, folder / "model/__0_0.distcp")

        assert verify(folder).faults
        assert (
            verify(folder / "model/__0_0.distcp").faults == ()
        )  # without its index, it may be new

    def test_a_save_over_it_is_a_new_one(self, folder: Path) -> None:
        verify(folder)
        older = folder.parent / "iter_0000002"
        for path in (path for path in older.rglob("*") if path.is_file()):
            if path.name != "meta.json":
                shutil.copy2(path, folder / path.relative_to(older))
        meta = json.loads((folder / "meta.json").read_text())
        (folder / "meta.json").write_text(json.dumps(meta | {"timestamp": 1.0}))

        assert verify(folder).is_good
