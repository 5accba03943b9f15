"""Pickles that are no index, or mean harm: refused in words, without a call, a crash or a hang."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import hostile_pickles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from saved_index import (
    BYTES,
    chunk,
    index_of_one,
    index_of_shards,
    key,
    object_key,
    place,
    properties,
    saved,
    size,
    tensor,
)

from tui.checkpoints import dcp
from tui.checkpoints.dcp import read_index
from tui.checkpoints.index import DcpIndex, NotAnIndexError
from tui.demo.pickled import Built, Called, Named, Pairs, pickled

CAPTURES = Path(__file__).parents[1] / "data"
MODEL = (CAPTURES / "captures/ckpt-run-a/iter_0000002/model/.metadata").read_bytes()
SCHEDULER = (CAPTURES / "captures/ckpt-run-a/iter_0000002/lr_scheduler/.metadata").read_bytes()
MEGATRON = (CAPTURES / "megatron/core-0.15/iter_0000019/.metadata").read_bytes()
METADATA = "torch.distributed.checkpoint.metadata"


def refusal(raw: bytes) -> str:
    with pytest.raises(NotAnIndexError) as refused:
        read_index(raw)
    said = str(refused.value)
    assert said.startswith("not an index: ")
    assert said.isprintable()
    assert len(said) < 600
    return said.removeprefix("not an index: ")


@pytest.fixture(scope="module")
def corpus() -> dict[str, list[str]]:
    """What became of each hostile pickle in a process of its own, and what it set off."""
    done = subprocess.run(
        [sys.executable, hostile_pickles.__file__],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return {name: said for name, *said in lines}


def test_no_hostile_pickle_is_taken_and_none_sets_off_anything(
    corpus: dict[str, list[str]],
) -> None:
    assert corpus.keys() == hostile_pickles.CORPUS.keys() | hostile_pickles.HARMLESS.keys()
    for name in hostile_pickles.CORPUS:
        assert corpus[name][0].startswith("not an index: "), name
        assert corpus[name][1:] == [], name


def test_what_nothing_reads_does_no_harm(corpus: dict[str, list[str]]) -> None:
    assert {name: corpus[name] for name in hostile_pickles.HARMLESS} == {
        name: ["1 items"] for name in hostile_pickles.HARMLESS
    }


class Watched(pickle.Unpickler):
    """Python's own unpickler; what would be called is noted."""

    def __init__(self, raw: bytes) -> None:
        super().__init__(io.BytesIO(raw))
        self.called: list[str] = []

    def find_class(self, module: str, name: str) -> object:
        return lambda *arguments: self.called.append(name)


def test_the_corpus_would_show_a_reader_that_calls() -> None:
    for name, called in (("builtins.eval", "eval"), ("global in protocol 2", "system")):
        watched = Watched(hostile_pickles.CORPUS[name]())
        watched.load()
        assert watched.called == [called]


ONE = [(key("w", 0, 0), place("__0_0.distcp", 0, 10))]
TWICE = [*ONE, (key("w", 0, 0), place("__0_0.distcp", 10, 10))]


def two(first: object, second: object) -> bytes:
    return saved({"a": tensor(2), "b": tensor(2)}, [(key("a", 0), first), (key("b", 0), second)])


WRONG: dict[str, tuple[Callable[[], bytes], str]] = {
    "no described": (lambda: saved(None, ONE), "it has no state_dict_metadata"),
    "no stored": (lambda: saved({"w": tensor(2, 3)}, None), "it has no storage_data"),
    "described by a number": (lambda: saved({7: BYTES}, []), "a name that is no text"),
    "described as text": (lambda: saved({"w": "x"}, ONE), "no TensorStorageMetadata"),
    "described twice": (lambda: saved([("w", BYTES), ("w", BYTES)], []), "'w' is described twice"),
    "not described": (lambda: saved({}, ONE), "a part of 'w' that it does not describe"),
    "not stored": (
        lambda: saved({"w": tensor(2, 3)}, {}),
        "does not say where a part of 'w' is stored",
    ),
    "object not stored": (lambda: saved({"w": BYTES}, {}), "does not say where"),
    "stored twice": (lambda: saved({"w": tensor(2, 3)}, TWICE), "that it does not describe"),
    "stored elsewhere": (
        lambda: saved({"w": tensor(2, 3)}, [(key("w", 1, 0), place("a", 0, 10))]),
        "that it does not describe",
    ),
    "tensor stored as an object": (
        lambda: saved({"w": tensor(2, 3)}, [(object_key("w"), place("a", 0, 10))]),
        "that it does not describe",
    ),
    "parts too few": (lambda: saved({"w": tensor(2, 3, chunks=[])}, {}), "hold 0 of 6 elements"),
    "parts too many": (
        lambda: saved({"w": tensor(2, chunks=[chunk([0], [2]), chunk([1], [1])])}, {}),
        "hold 3 of 2 elements",
    ),
    "part too long": (
        lambda: saved({"w": tensor(2, chunks=[chunk([1], [2])])}, {}),
        "reaches out of its tensor",
    ),
    "part of other dimensions": (
        lambda: saved({"w": tensor(2, chunks=[chunk([0, 0], [2, 1])])}, {}),
        "other dimensions",
    ),
    "parts in a tuple": (lambda: saved({"w": tensor(2, chunks=())}, {}), "a list of its parts"),
    "negative size": (lambda: saved({"w": tensor(-2)}, {}), "a count that cannot be one"),
    "huge size": (lambda: saved({"w": tensor(2**64)}, {}), "a count that cannot be one"),
    "size of a flag": (
        lambda: saved({"w": tensor(1, size=size(True))}, {}),
        "a count that cannot be one",
    ),
    "size of 65": (lambda: saved({"w": tensor(*[1] * 65)}, {}), "a size that cannot be one"),
    "size of nothing": (
        lambda: saved({"w": tensor(2, size=Called(Named("torch", "Size"), ()))}, {}),
        "no size where one belongs",
    ),
    "dtype of no tensor": (
        lambda: saved({"w": tensor(2, properties=properties("Size"))}, {}),
        "unknown dtype",
    ),
    "unknown dtype": (
        lambda: saved({"w": tensor(2, properties=properties("float33"))}, {}),
        "it names 'torch', 'float33'",
    ),
    "unknown layout": (
        lambda: saved({"w": tensor(2, properties=properties(layout="torch.strided"))}, {}),
        "unknown layout",
    ),
    "unknown memory format": (
        lambda: saved(
            {
                "w": tensor(
                    2,
                    properties=properties(
                        memory_format=Called(Named(METADATA, "_MEM_FORMAT_ENCODING"), (3,))
                    ),
                )
            },
            {},
        ),
        "unknown layout",
    ),
    "flag of a number": (
        lambda: saved({"w": tensor(2, properties=properties(pin_memory=0))}, {}),
        "a flag that is none",
    ),
    "overlap": (lambda: two(place("x", 0, 10), place("x", 9, 10)), "'a' and 'b' overlap in x"),
    "negative offset": (lambda: two(place("x", -1, 10), place("x", 9, 10)), "cannot be one"),
    "length of a text": (lambda: two(place("x", 0, "10"), place("x", 9, 10)), "cannot be one"),
    "file elsewhere": (lambda: index_of_one(10, "../../etc/shadow"), "is no file beside it"),
    "absolute file": (lambda: index_of_one(10, "/etc/shadow"), "is no file beside it"),
    "folder": (lambda: index_of_one(10, ".."), "'..' is no file beside it"),
    "file without a name": (lambda: index_of_one(10, ""), "'' is no file beside it"),
    "file that moves the cursor": (lambda: index_of_one(10, "\x1b[2J"), "is no file beside it"),
    "key that moves the cursor": (lambda: saved({"\x1b[2J\n": BYTES}, {}), r"'\x1b[2J\n'"),
    "long key": (lambda: saved({"ü" * 9000: BYTES}, {}), "a part of"),
    "transforms of numbers": (
        lambda: two(place("x", 0, 1, transform_descriptors=[1]), place("y", 9, 10)),
        "a name that is no text",
    ),
    "transforms in a text": (
        lambda: two(place("x", 0, 1, transform_descriptors="zstd"), place("y", 9, 10)),
        "transforms that cannot be any",
    ),
    "paths of other names": (
        lambda: saved({"a.b": BYTES}, {}, planner_data={"a.b": ("a", "c")}),
        "'a.b' is not the name of its path",
    ),
    "paths of other lengths": (
        lambda: saved({"a.b": BYTES}, {}, planner_data={"a.b": ("a", "b", "c", "d", "e")}),
        "'a.b' has no path",
    ),
    "paths of some": (
        lambda: saved({"a": BYTES, "b": BYTES}, {}, planner_data={"a": ("a",)}),
        "'b' has no path",
    ),
    "two paths": (
        lambda: saved({"a": BYTES}, {}, planner_data=Pairs((("a", ("a",)), ("a", ("a",))))),
        "'a' has two paths",
    ),
    "path of tuples": (
        lambda: saved({"a": BYTES}, {}, planner_data={"a": (("a",),)}),
        "a name that is no text",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_no_index_says_is_refused(name: str) -> None:
    build, said = WRONG[name]
    assert said in refusal(build())


def test_parts_are_counted_as_often_as_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream can give one list of parts to any number of tensors."""
    many = saved({f"w{n}": tensor(0, chunks=[chunk([0], [0])] * 4) for n in range(3)}, {})
    monkeypatch.setattr(dcp, "CHUNK_LIMIT", 12)
    assert read_index(many).items == ()
    monkeypatch.setattr(dcp, "CHUNK_LIMIT", 11)
    assert refusal(many) == "a tensor without a list of its parts"


def standing_in(raw: bytes) -> pickle.Unpickler:
    """C's unpickler, with a class of no behaviour for whatever is named."""

    class StandIn:
        def __init__(self, *arguments: object) -> None:
            self.arguments = arguments

        def __setstate__(self, state: object) -> None:
            self.state = state

    class Inert(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> object:
            return type(name, (StandIn,), {})

    return Inert(io.BytesIO(raw))


def read_or_none(raw: bytes) -> DcpIndex | None:
    """What is read; whatever is no index is refused in words."""
    try:
        return read_index(raw)
    except NotAnIndexError as fault:
        refused = str(fault)
    assert refused.startswith("not an index: ")
    assert refused.isprintable()
    return None


@settings(deadline=None, max_examples=400)
@given(raw=st.binary(max_size=400), headed=st.booleans())
def test_any_bytes(raw: bytes, headed: bool) -> None:
    assert read_or_none(b"\x80\x04" + raw if headed else raw) is None


KNOWN = b"".join(
    bytes([code]) for code in b"(N\x88\x89KMJ\x8aG\x8cX)\x85\x86\x87t]ae}su\x94qrhjc\x93R\x81b"
)


@settings(deadline=None, max_examples=400)
@given(codes=st.lists(st.sampled_from(KNOWN), max_size=200))
def test_any_opcodes_of_an_index(codes: list[int]) -> None:
    assert read_or_none(b"\x80\x04" + bytes(codes) + b".") is None


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    """A real index with some bytes changed, cut out, doubled or put in."""
    raw = bytearray(
        draw(st.sampled_from((MODEL, SCHEDULER, MEGATRON, index_of_shards({"a": 9, "b": 8}))))
    )
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(raw) - 1)))
        length = draw(st.integers(1, 40))
        match draw(st.integers(0, 4)):
            case 0:
                raw[at : at + 1] = bytes([draw(st.integers(0, 255))])
            case 1:
                del raw[at : at + length]
            case 2:
                raw[at:at] = raw[at : at + length]
            case 3:
                raw[at:at] = draw(st.binary(max_size=10))
            case _:
                raw[at : at + 1] = bytes([raw[at] ^ (1 << draw(st.integers(0, 7)))])
    return bytes(raw)


@settings(deadline=None, max_examples=600)
@given(raw=mutations())
def test_a_changed_index_is_refused_or_one_that_python_reads_too(raw: bytes) -> None:
    if read_or_none(raw) is not None:
        standing_in(raw).load()


@pytest.mark.parametrize("raw", [SCHEDULER, MEGATRON], ids=["fsdp", "megatron"])
def test_every_truncation_is_refused(raw: bytes) -> None:
    for length in range(len(raw)):
        refusal(raw[:length])


def test_nine_of_ten_flipped_bits_are_noticed_and_no_name_or_shape_changes_unseen() -> None:
    """The rest are offsets, lengths and files, which the shards themselves tell, and idle fields."""
    sound = read_index(SCHEDULER)
    unseen = 0
    for place_of_bit in range(8 * len(SCHEDULER)):
        flipped = bytearray(SCHEDULER)
        flipped[place_of_bit // 8] ^= 1 << place_of_bit % 8
        found = read_or_none(bytes(flipped))
        if found is not None:
            unseen += 1
            assert found.tensors == sound.tensors
            assert {item.key for item in found.items} == {item.key for item in sound.items}
    assert 0 < unseen < 0.1 * 8 * len(SCHEDULER)


def test_an_enum_as_early_python_3_11_pickled_it() -> None:
    member = Called(
        Named("builtins", "getattr"),
        (Named(METADATA, "_MEM_FORMAT_ENCODING"), "TORCH_CONTIGUOUS_FORMAT"),
    )
    described = {"w": tensor(2, 3, properties=properties(memory_format=member))}
    assert read_index(saved(described, ONE)).parameter_count == 6
    other = Called(Named("builtins", "getattr"), (Named("torch", "Size"), "__class__"))
    described = {"w": tensor(2, 3, properties=properties(memory_format=other))}
    assert "unknown layout" in refusal(saved(described, ONE))


def test_a_record_of_another_kind_is_no_index() -> None:
    sound = index_of_one(10)
    assert b"\x8c\x08Metadata" in sound
    assert "it names" in refusal(sound.replace(b"\x8c\x08Metadata", b"\x8c\x08Metadate"))
    assert refusal(pickled(Built(Named(METADATA, "Metadata")), protocol=4)).startswith("a Metadata")
