"""What converters print is read as they print it, and anything else does no harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.miles.converter_output import (
    Failure,
    Keys,
    Printed,
    Stage,
    Trouble,
    printed_by,
    progress_line,
)
from tui.model.text import harmless

FSDP = """\
loading FSDP model from /ckpt/run-a/iter_0000020/model
find model_state.model.model.embed_tokens.weight in torch_dist ckpt
find model_state.model.model.norm.weight in torch_dist ckpt
FSDP model loaded in 12.30 sec.
Using prefix 'model_state.model.' for key mapping. Matched 2/2 parameter keys.
Missing keys: ['lm_head.weight']
Unexpected keys: []
Model weights saved to /ckpt/models/run-a-step-20
Skip .cache, not a file.
copy from /hf/config.json to /ckpt/models/run-a-step-20/config.json
copy from /hf/tokenizer.json to /ckpt/models/run-a-step-20/tokenizer.json
""".splitlines()
MEGATRON = """\
loading model from /ckpt/run-a/iter_0000019
find decoder.final_layernorm.weight in torch_dist ckpt
model loaded in 3.20 sec.
start saving to /ckpt/models/x
/ckpt/models/x/model.safetensors.index.json saved.
model-00000-of-00002.safetensors saved in 1.20 sec.
model-00001-of-00002.safetensors saved in 0.80 sec.
copy from /hf/config.json to /ckpt/models/x/config.json
""".splitlines()


def test_all_of_fsdp() -> None:
    assert printed_by(FSDP) == Printed(
        stage=Stage.COPYING,
        found=2,
        prefix="model_state.model.",
        matched=(2, 2),
        missing=Keys(count=1, first=("lm_head.weight",)),
        unexpected=Keys(count=0, first=()),
        is_written=True,
        copied=2,
    )


def test_all_of_megatron() -> None:
    assert printed_by(MEGATRON) == Printed(
        stage=Stage.COPYING, found=1, shards=2, shards_written=2, is_written=True, copied=1
    )


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], "starting"),
        (FSDP[:1], "reading the checkpoint: 0 of 2 tensors found"),
        (FSDP[:3], "reading the checkpoint: 2 of 2 tensors found"),
        ([*FSDP[:3], FSDP[2]], "reading the checkpoint: 2 of 2 tensors found"),
        (FSDP[:5], "building the model"),
        (FSDP[:7], "writing the weights"),
        (FSDP, "copying configuration and tokenizer: 2 files"),
        (MEGATRON[:4], "writing the weights"),
        (MEGATRON[:6], "writing the weights: 1 of 2 shards"),
    ],
)
def test_progress(lines: list[str], told: str) -> None:
    assert progress_line(printed_by(lines), 2) == told


def test_not_all_shards_are_not_all_weights() -> None:
    assert not printed_by(MEGATRON[:6]).is_written
    assert printed_by(MEGATRON[:7]).is_written


def test_a_line_that_a_bar_was_drawn_on() -> None:
    line = "Writing model shards: 50%|##   | 1/2 [00:01<00:01]\rModel weights saved to /x"

    assert Printed().after(line).is_written
    assert Printed().after("Loading: 100%|##| 2/2 [00:01<00:00]find a.b in torch_dist ckpt").found


@pytest.mark.parametrize(
    ("line", "failure"),
    [
        ("ValueError: Output directory /x already exists. Use --force.", Failure.OUTPUT_EXISTS),
        ("FileNotFoundError: [Errno 2] No such file: '/x/common.pt'", Failure.NOT_FOUND),
        ("ValueError: No model weights found in checkpoint. Please", Failure.NO_WEIGHTS),
        ("ValueError: 3 parameters have no weight in the checkpoint under", Failure.UNTRAINED),
        ("ModuleNotFoundError: No module named 'megatron'", Failure.IMPORT),
        ("MemoryError", Failure.MEMORY),
        ("OSError: [Errno 28] No space left on device", Failure.DISK),
        ("torch.distributed.checkpoint.api.CheckpointException: x", Failure.OTHER),
        ("KeyError: 'args'", Failure.OTHER),
    ],
)
def test_the_last_line_of_a_traceback(line: str, failure: Failure) -> None:
    before = ("Traceback (most recent call last):", '  File "x.py", line 1', "    raise")
    printed = printed_by((*FSDP[:2], *before, line))

    assert printed.trouble == Trouble(failure=failure, text=line)
    assert printed.stage is Stage.READING
    assert printed_by([line]).trouble is None, "outside a traceback it is just a line"


@pytest.mark.parametrize(
    ("line", "failure"),
    [
        ("convert_fsdp_to_hf.py: error: unrecognized arguments: --x", Failure.ARGUMENTS),
        (
            "python3: can't open file '/root/miles/tools/convert_fsdp_to_hf.py': [Errno 2] No such",
            Failure.NOT_FOUND,
        ),
    ],
)
def test_an_end_without_a_traceback(line: str, failure: Failure) -> None:
    trouble = Printed().after(line).trouble

    assert trouble is not None
    assert trouble.failure is failure


def test_of_two_tracebacks_the_last_counts() -> None:
    printed = printed_by(
        (
            "Traceback (most recent call last):",
            "ImportError: no flash_attn",
            "Traceback (most recent call last): (RANK 0)",
            "FileNotFoundError: [Errno 2] No such file or directory: '/x/.metadata'",
        )
    )

    assert printed.trouble is not None
    assert printed.trouble.failure is Failure.NOT_FOUND


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("[]", Keys(count=0, first=())),
        ("['a', \"b'c\"]", Keys(count=2, first=("a", "b'c"))),
        ("['a', 'b", Keys(count=1, first=("a",))),
        ("[None]", Keys(count=1, first=("None",))),
        (
            str([f"layer.{n}" for n in range(5000)]),
            Keys(count=5000, first=tuple(f"layer.{n}" for n in range(20))),
        ),
        ("['\x1b[31mred\u202e']", Keys(count=1, first=("red<202E>",))),
    ],
)
def test_lists_of_keys(text: str, keys: Keys) -> None:
    printed = Printed().after(f"Missing keys: {text}")

    assert printed.missing == keys
    assert printed.unexpected is None


def test_many_keys_in_a_line_for_a_person() -> None:
    assert str(Keys(count=5, first=("a", "b", "c", "d", "e"))) == "a, b, c and 2 more"
    assert str(Keys(count=1, first=("a",))) == "a"


WORDS = st.sampled_from(
    [*FSDP, *MEGATRON, "Traceback (most recent call last):", "ValueError: x", "Missing keys: ['"]
)


@given(st.lists(st.one_of(WORDS, st.text(), st.tuples(WORDS, st.text()).map("".join)), max_size=9))
def test_anything_can_be_read(lines: list[str]) -> None:
    printed = printed_by(lines)

    shown = [progress_line(printed, 2)]
    if printed.trouble is not None:
        shown.append(printed.trouble.text)
    assert shown == [harmless(text) for text in shown]


@pytest.mark.parametrize(
    "piece",
    [
        *("find a ", "'", '"', "\\", "['", "', '", "find ", "Missing keys: [", "copy from "),
        *("Using prefix '", "model-", "0", " to ", "Traceback", "Output directory ", "\r", "a"),
    ],
)
@pytest.mark.parametrize("start", ["", "Missing keys: [", "copy from ", "find ", "a.py: error: "])
def test_of_a_line_of_megabytes_little_is_kept(start: str, piece: str) -> None:
    """And it is read in one go: a pattern that tries all ways would not come to its end."""
    line = start + piece * (4_000_000 // len(piece))

    assert len(str(Printed(in_traceback=True).after(line))) < 50_000
