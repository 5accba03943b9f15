"""Deep verify of what Miles' own code wrote, and of the same with something wrong in it."""

from __future__ import annotations

import json
import os
import shutil
import struct
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tui.checkpoints.ledger import page_path, remembered
from tui.checkpoints.plan import Subject
from tui.checkpoints.verify import VerifyResult, verify
from tui.demo.torchzip import Tensor, saved_tensor, saved_value
from tui.errors import NothingFoundError, UsageError
from tui.model.checkpoint import Soundness

SHARD = "model/__0_0.distcp"
HOUR_S = 3600.0


@pytest.fixture
def root(data: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(data / "captures" / "ckpt-run-a", tmp_path / "run-a"))


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "iter_0000004"


def soundness(result: VerifyResult) -> Soundness:
    assert result.verification is not None, result
    return result.verification.soundness


def in_place(path: Path, at: int, raw: bytes) -> None:
    """Other bytes, without a trace in the file's size and time."""
    status = path.stat()
    with path.open("r+b") as file:
        file.seek(at)
        file.write(raw)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def flip(path: Path, at: int, bit: int = 0) -> None:
    with path.open("rb") as file:
        file.seek(at)
        (value,) = file.read(1)
    in_place(path, at, bytes([value ^ 1 << bit]))


class TestWhole:
    def test_what_miles_wrote_is_sound(self, folder: Path) -> None:
        result = verify(folder)

        assert result.is_good
        assert result.subject is Subject.CHECKPOINT
        assert soundness(result) is Soundness.SOUND
        assert result.files == 9
        assert (
            result.total_bytes
            == sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
            + (folder.parent / "rollout/global_dataset_state_dict_3.pt").stat().st_size
        )

    @pytest.mark.parametrize(
        "below",
        [
            "model",
            "optimizer",
            "lr_scheduler",
            SHARD,
            "rng.pt",
            "../rollout/global_dataset_state_dict_3.pt",
        ],
    )
    def test_each_part_can_be_verified_alone(self, folder: Path, below: str) -> None:
        result = verify(folder / below)

        assert result.is_good
        assert result.subject is (Subject.FILE if "." in below.split("/")[-1] else Subject.PART)

    def test_a_shard_without_its_index_says_itself_where_its_items_are(self, folder: Path) -> None:
        (folder / "model/.metadata").unlink()
        result = verify(folder / SHARD)

        assert result.is_good
        flip(folder / SHARD, 300_000)
        assert "item at byte" in verify(folder / SHARD).faults[0]

    def test_a_link_that_leads_nowhere_is_as_good_as_no_file(self, folder: Path) -> None:
        (folder / "notes").symlink_to("nowhere")
        (folder / "model" / "round").symlink_to("round")
        assert soundness(verify(folder)) is Soundness.SOUND

        (folder / "meta.json").unlink()
        (folder / "meta.json").symlink_to("nowhere")
        assert not verify(folder).is_good

    def test_progress_ends_at_the_whole(self, folder: Path) -> None:
        told: list[tuple[int, int]] = []
        result = verify(folder, report=lambda done, total: told.append((done, total)))

        assert told[-1] == (result.total_bytes, result.total_bytes)
        assert told == sorted(told)

    def test_a_relative_path_is_the_same_checkpoint(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(folder)
        result = verify(Path())

        assert result.files == 9
        assert remembered(folder) == result.verification

    def test_cancelled_it_says_nothing(self, folder: Path) -> None:
        cancel = threading.Event()
        cancel.set()
        result = verify(folder, cancel=cancel)

        assert result.is_cancelled
        assert not result.is_good
        assert result.verification is None
        assert remembered(folder) is None

    def test_shallow_says_what_names_and_sizes_tell(self, folder: Path) -> None:
        flip(folder / SHARD, 300_000)

        assert verify(folder, shallow=True).is_good
        assert not page_path(folder).exists()

    def test_a_save_folder_and_an_empty_one_are_refused(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        with pytest.raises(UsageError, match="several"):
            verify(root)
        with pytest.raises(NothingFoundError, match="no checkpoint"):
            verify(tmp_path / "empty")
        with pytest.raises(NothingFoundError, match="not there"):
            verify(tmp_path / "nowhere")
        with pytest.raises(NothingFoundError, match="no part of one"):
            verify(root / "latest_checkpointed_iteration.txt")


class TestDamage:
    def test_one_bit_of_a_tensor(self, folder: Path) -> None:
        flip(folder / SHARD, 300_000, 3)
        result = verify(folder)

        assert soundness(result) is Soundness.DAMAGED
        (fault,) = result.faults
        assert fault.startswith(f"{SHARD}: model_state.model.")
        assert fault.endswith("data/0 does not have its checksum")

    @settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
    @given(at=st.integers(0, 8826), bit=st.integers(0, 7))
    def test_any_bit_of_a_shard(self, data: Path, tmp_path: Path, at: int, bit: int) -> None:
        """Headers, padding, pickles and directories: `torch` looks at few of them."""
        part = data / "captures/ckpt-run-a/iter_0000004/lr_scheduler"
        copy = tmp_path / "lr_scheduler"
        shutil.copytree(part, copy, dirs_exist_ok=True)
        raw = bytearray((part / "__0_0.distcp").read_bytes())
        assert len(raw) == 8827
        # Unused, and in no relation to anything: versions, and attributes of the directory.
        raw[at] ^= 1 << bit
        (copy / "__0_0.distcp").write_bytes(raw)
        shutil.rmtree(page_path(copy).parent, ignore_errors=True)
        result = verify(copy)

        if result.is_good:
            assert is_unused(bytes(raw), at)

    def test_a_cut_file_a_missing_one_and_an_empty_one(self, folder: Path) -> None:
        with (folder / SHARD).open("r+b") as file:
            file.truncate(500_000)
        (folder / "rng.pt").write_bytes(b"")
        (folder / "optimizer/__0_0.distcp").unlink()

        for result in (verify(folder, shallow=True), verify(folder)):
            told = "\n".join((*result.faults, *result.incomplete))
            assert "500,000 bytes long, the index needs 598,017" in told
            assert "rng.pt: no end of a zip" in told
            assert "optimizer/__0_0.distcp" in told
            assert not result.is_good

    def test_bytes_that_belong_to_no_item(self, folder: Path) -> None:
        with (folder / SHARD).open("ab") as file:
            file.write(b"more")

        assert any("4 bytes at its end belong to no item" in f for f in verify(folder).faults)

    def test_an_index_of_other_tensors(self, folder: Path) -> None:
        path = folder / "model/.metadata"
        raw = path.read_bytes()
        at = raw.index(b"float32")
        path.write_bytes(raw.replace(b"float32\x94", b"float64\x94", 1))
        result = verify(folder / "model")

        assert at > 0
        assert any("where the index has one of" in fault for fault in result.faults)

    def test_numbers_of_miles_that_do_not_agree(self, folder: Path) -> None:
        meta = json.loads((folder / "meta.json").read_text())
        (folder / "meta.json").write_text(json.dumps(meta | {"next_rollout_id": 5}))

        assert "meta.json: next_rollout_id is 5, not 4" in verify(folder, shallow=True).faults

    def test_a_save_that_was_interrupted_is_incomplete_and_its_bytes_are_sound(
        self, folder: Path
    ) -> None:
        for name in ("meta.json", "rng.pt"):
            (folder / name).unlink()
        result = verify(folder, clock=lambda: time.time() + HOUR_S)

        assert not result.is_good
        assert not result.faults
        assert "did not finish" in result.incomplete[0]
        assert soundness(result) is Soundness.SOUND

    def test_a_missing_data_state_is_worth_a_line(self, folder: Path) -> None:
        (folder.parent / "rollout/global_dataset_state_dict_3.pt").unlink()
        result = verify(folder)

        assert result.is_good
        assert "data order would start again" in result.notes[0]

    def test_a_file_that_changes_meanwhile_is_not_judged(self, folder: Path) -> None:
        def change(done: int, total: int) -> None:
            (folder / "rng.pt").touch()

        result = verify(folder, report=change)

        assert result.verification is None
        assert result.unread == ("rng.pt: changed while it was read",)
        assert remembered(folder) is None


def is_unused(raw: bytes, at: int) -> bool:
    """Whether a byte is a version or an attribute in a zip's directory, which nothing reads."""
    entry = raw.rfind(b"PK\x01\x02", 0, at + 1)
    end = raw.rfind(b"PK\x06\x06", 0, at + 1)
    return at - entry in (4, 5, *range(36, 42)) or at - end in range(12, 16)


class TestChecksums:
    def unsummed(self, raw: bytes) -> bytes:
        """As a writer leaves it that computes no checksums: zeros for them."""
        changed, at = bytearray(raw), 0
        while (at := changed.find(b"PK\x07\x08", at)) >= 0:
            changed[at + 4 : at + 8] = bytes(4)
            at += 16
        at = 0
        while (at := changed.find(b"PK\x01\x02", at)) >= 0:
            changed[at + 16 : at + 20] = bytes(4)
            at += 46
        return bytes(changed)

    def test_without_checksums_is_not_damaged(self, folder: Path) -> None:
        (folder / "rng.pt").write_bytes(self.unsummed((folder / "rng.pt").read_bytes()))
        os.utime(folder / "rng.pt", (folder.stat().st_mtime,) * 2)
        result = verify(folder)

        assert soundness(result) is Soundness.NO_SUMS
        assert result.is_good
        assert soundness(verify(folder)) is Soundness.SOUND, "the ledger knows it by now"

        flip(folder / "rng.pt", 3000)
        result = verify(folder)
        assert soundness(result) is Soundness.DAMAGED
        assert "its bytes changed since they were verified at" in result.faults[0]

    def test_one_wrong_among_right_ones_is_damage(self, tmp_path: Path) -> None:
        raw = saved_value({"a": 1})
        at = raw.index(b"PK\x07\x08")
        (tmp_path / "x.pt").write_bytes(raw[: at + 4] + bytes(4) + raw[at + 8 :])

        assert soundness(verify(tmp_path / "x.pt")) is Soundness.DAMAGED


class TestNumbers:
    def test_nan_in_the_model_and_in_the_optimizer(self, tmp_path: Path) -> None:
        raw = struct.pack("<6f", 1.0, float("nan"), 3.0, float("-inf"), 0.0, 1e38)
        path = tmp_path / "adapter_model.bin"
        path.write_bytes(saved_tensor(Tensor(raw, (2, 3))))
        result = verify(path)

        assert result.verification is not None
        assert result.verification.soundness is Soundness.NOT_FINITE
        assert result.verification.non_finite == 2
        assert result.verification.faults == (
            "adapter_model.bin: archive/data/0: 2 of 6 numbers are nan or inf",
        )
        assert not result.is_good

        other = tmp_path / "training_state_rank0.pt"
        other.write_bytes(path.read_bytes())
        result = verify(other)
        assert result.is_good
        assert soundness(result) is Soundness.SOUND
        assert result.numbers == (
            "training_state_rank0.pt: archive/data/0: 2 of 6 numbers are nan or inf",
        )


class TestOtherLayouts:
    def test_megatron(self, folder: Path, tmp_path: Path) -> None:
        megatron = tmp_path / "megatron/iter_0000019"
        shutil.copytree(folder / "model", megatron)
        shutil.copy(folder / "rng.pt", megatron / "common.pt")
        (megatron / "metadata.json").write_text('{"sharded_backend": "torch_dist"}')
        result = verify(megatron)

        assert result.subject is Subject.CHECKPOINT
        assert result.is_good
        assert result.files == 4

        flip(megatron / "common.pt", 3000)
        assert "common.pt: rng/data/0 does not have its checksum" in verify(megatron).faults

    def test_an_adapter(self, folder: Path, tmp_path: Path) -> None:
        adapter = tmp_path / "lora/iter_0000019/adapter"
        adapter.mkdir(parents=True)
        for name in ("adapter_megatron_rank0.pt", "training_state_rank0.pt", "adapter_model.bin"):
            shutil.copy(folder / "rng.pt", adapter / name)
        (adapter / "adapter_config.json").write_text("{}")
        result = verify(adapter.parent)

        assert result.is_good
        assert result.files == 4
        assert verify(adapter).is_good, "which is a folder that PEFT reads"

        (adapter / "training_state_rank0.pt").unlink()
        assert verify(adapter.parent).incomplete

    def test_a_renamed_checkpoint(self, folder: Path) -> None:
        moved = folder.rename(folder.with_name("before-the-change"))

        assert verify(moved).is_good
        assert verify(moved / "model").is_good

    def test_what_no_resume_reads_is_worth_a_line(self, folder: Path) -> None:
        shutil.copy(folder / SHARD, folder / "model/__1_0.distcp")

        assert any(
            "__1_0.distcp: not named by the index" in n for n in verify(folder / "model").notes
        )


def test_more_than_four_gigabytes(tmp_path: Path) -> None:
    """64-bit sizes, which torch writes for such a record, in a file of holes."""
    path = tmp_path / "large.pt"
    write_large(path, (4 << 30) + 16, crc=0xC9EFF1BD)
    result = verify(path)

    assert result.faults == ()
    assert soundness(result) is Soundness.SOUND


def write_large(path: Path, size: int, *, crc: int) -> None:
    """One record of zeros and a small one behind it, as torch lays them out."""
    body, directory = [], []
    at = 0
    with path.open("wb") as file:
        for name, length, sum_ in ((b"large/data/0", size, crc), (b"large/version", 2, 0x55679ED1)):
            is_wide, is_far = length >= 1 << 32, at >= 1 << 32
            wide = struct.pack("<2Q", length, 0) if is_wide else b""
            wide += struct.pack("<Q", at) if is_far else b""
            extra = struct.pack("<2H", 1, len(wide)) + wide if wide else b""
            padding = -(at + 30 + len(name) + len(extra) + 4) % 64
            extra += b"FB" + struct.pack("<H", padding) + b"Z" * padding
            file.write(
                struct.pack(
                    "<4s5H3I2H", b"PK\3\4", 0, 0x808, 0, 0, 0, 0, 0, 0, len(name), len(extra)
                )
            )
            file.write(name + extra)
            if is_wide:
                file.truncate(file.tell() + length)
                file.seek(0, os.SEEK_END)
            else:
                file.write(b"3\n")
            file.write(struct.pack("<4sI2Q" if wide else "<4s3I", b"PK\7\10", sum_, length, length))
            far = (struct.pack("<2Q", length, length) if is_wide else b"") + (
                struct.pack("<Q", at) if is_far else b""
            )
            shown = min(length, 0xFFFFFFFF)
            directory.append(
                struct.pack(
                    "<4s6H3I5H2I",
                    b"PK\1\2",
                    0,
                    0,
                    0x808,
                    0,
                    0,
                    0,
                    sum_,
                    shown,
                    shown,
                    len(name),
                    len(far) + 4 if far else 0,
                    0,
                    0,
                    0,
                    0,
                    min(at, 0xFFFFFFFF),
                )
                + name
                + (struct.pack("<2H", 1, len(far)) + far if far else b"")
            )
            at = file.tell()
            body.append(name)
        listed = b"".join(directory)
        file.write(listed)
        file.write(struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 0x31E, 45, 0, 0, 2, 2, len(listed), at))
        file.write(struct.pack("<4sIQI", b"PK\6\7", 0, at + len(listed), 1))
        file.write(struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 2, 2, len(listed), 0xFFFFFFFF, 0))
