"""Hostile pickles, and a program that reads them all in bounded memory and processor time.

It prints a line for each: its name, what was said of it, and every event that Python's audit hooks
told of meanwhile, such as an import, an open file or a call of the system.
"""

from __future__ import annotations

import pickletools
import resource
import struct
import sys
from collections.abc import Callable

from saved_index import index_of_one

from tui.checkpoints.dcp import read_index
from tui.checkpoints.index import NotAnIndexError

MEMORY_BYTES = 1 << 30
PROCESSOR_S = 120
MILLION = 1_000_000


def text(value: str) -> bytes:
    raw = value.encode()
    return b"\x8c" + bytes([len(raw)]) + raw


def named(module: str, name: str) -> bytes:
    return text(module) + text(name) + b"\x93"


def stream(body: bytes, protocol: int = 4) -> bytes:
    """A pickle without frames."""
    return b"\x80" + bytes([protocol]) + body + b"."


def calling(module: str, name: str, argument: bytes) -> bytes:
    return stream(named(module, name) + argument + b"\x85R")


def recall(place: int) -> bytes:
    return b"j" + struct.pack("<I", place)


def beside(more: Callable[[int], bytes]) -> bytes:
    """A sound index with one more attribute by raw opcodes; `more` is told the memo's length."""
    sound = index_of_one(10)
    places = sum(code.name == "MEMOIZE" for code, _, _ in pickletools.genops(sound))
    assert sound.endswith(b"ub.")
    return b"\x80\x04" + sound[11:-3] + text("more") + more(places) + b"ub."


def laughs(place: int) -> bytes:
    """Sixty lists, each of ten times the one before."""
    lists = [b"]\x94"]
    for level in range(60):
        lists.append(b"]\x94(" + recall(place + level) * 10 + b"e")
    return b"(" + b"".join(lists) + b"t"


CORPUS: dict[str, Callable[[], bytes]] = {
    # Names
    "os.system": lambda: calling("os", "system", text("touch /tmp/milepost-was-here")),
    "posix.system": lambda: calling("posix", "system", text("true")),
    "builtins.eval": lambda: calling("builtins", "eval", text("__import__('os')")),
    "builtins.exec": lambda: calling("builtins", "exec", text("import os")),
    "builtins.__import__": lambda: calling("builtins", "__import__", text("antigravity")),
    "subprocess.Popen": lambda: calling("subprocess", "Popen", text("true")),
    "torch.load": lambda: calling("torch", "load", text("/etc/passwd")),
    "torch.hub.load": lambda: calling("torch.hub", "load", text("a/b")),
    "dotted name": lambda: stream(named("torch", "Size.__class__") + b")R"),
    "dots moved": lambda: stream(named("torch.distributed", "checkpoint.metadata.Metadata.x")),
    "runpy": lambda: calling("runpy", "run_path", text("/etc/passwd")),
    "codecs": lambda: calling("_codecs", "encode", text("x")),
    "copyreg": lambda: stream(named("copyreg", "_reconstructor") + b")R"),
    "protocol 0 system": lambda: b"cos\nsystem\n(S'true'\ntR.",
    "protocol 1 system": lambda: b"cposix\nsystem\nq\x00(U\x04trueq\x01tR.",
    "global in protocol 2": lambda: b"\x80\x02cos\nsystem\n(X\x04\x00\x00\x00truetR.",
    "instance": lambda: b"\x80\x02(X\x04\x00\x00\x00trueios\nsystem\n.",
    "object": lambda: b"\x80\x02(cos\nsystem\nX\x04\x00\x00\x00trueo.",
    "new object with keywords": lambda: stream(named("torch", "Size") + b")}\x92"),
    "getattr chain": lambda: stream(
        named("builtins", "getattr") + named("torch", "Size") + text("__class__") + b"\x86R"
    ),
    "call of a record": lambda: stream(named("torch", "Size") + b")R)R"),
    "call of a text": lambda: stream(text("os.system") + b")R"),
    "name without text": lambda: stream(b"K\x01K\x02\x93"),
    "name in bytes": lambda: stream(b"C\x02osC\x06system\x93"),
    "name without an end": lambda: b"\x80\x02c" + b"o" * MILLION,
    # Ways out of the stream
    "persistent id": lambda: b"\x80\x02Pos.system\n.",
    "binary persistent id": lambda: stream(text("storage") + b"Q"),
    "extension 1": lambda: stream(b"\x82\x01"),
    "extension 2": lambda: stream(b"\x83\x01\x00"),
    "extension 4": lambda: stream(b"\x84\x01\x00\x00\x00"),
    "next buffer": lambda: stream(b"\x97", 5),
    "read only buffer": lambda: stream(b"N\x98", 5),
    # Depth
    "deep tuples": lambda: stream(b")" + b"\x85" * 3 * MILLION),
    "deep lists": lambda: stream(b"]" * MILLION + b"a" * (MILLION - 1)),
    "deep marks": lambda: stream(b"(" * MILLION + b"t" * MILLION),
    "deep dicts": lambda: stream((b"}" + text("k")) * MILLION + b"}" + b"s" * MILLION),
    "deep records": lambda: stream((named("torch", "Size") + b"\x94") + b")h\x00)" * MILLION),
    "list in itself": lambda: stream(b"]\x94h\x00a"),
    "dict in itself": lambda: stream(b"}\x94" + text("k") + b"h\x00s"),
    # Bombs
    "laughs by memo": lambda: stream(laughs(0)),
    "laughs by records": lambda: stream(
        named("torch", "Size")
        + b"\x94)\x94"
        + b"".join(recall(0) + recall(n) * 2 + b"\x86R\x94" for n in range(1, 900))
    ),
    "laughs by duplication": lambda: stream(b"]" + b"2\x86" * MILLION),
    "duplication": lambda: stream(b"N" + b"2" * MILLION),
    "memo": lambda: stream(b"N" + b"\x94" * 30 * MILLION),
    "memo far away": lambda: stream(b"Nr\xff\xff\xff\x7f"),
    "memo from nowhere": lambda: stream(b"j\xff\xff\xff\x7f"),
    "memo of nothing": lambda: stream(b"\x94"),
    "stack": lambda: stream(b"N" * 30 * MILLION),
    "stack of lists": lambda: stream(b"]" * 30 * MILLION),
    "lists in a list": lambda: stream(b"]" + b"]a" * 10 * MILLION),
    "dicts in tuples": lambda: stream(b"}\x85" * 10 * MILLION),
    "pops": lambda: stream(b"]\x940" * MILLION + b"N"),
    "sets": lambda: stream(b"\x8f(" + b"K\x01" * 1000 + b"\x90"),
    "long integer": lambda: stream(b"\x8b\xff\xff\xff\x7f" + b"\x01" * MILLION),
    "negative length": lambda: stream(b"\x8b\xff\xff\xff\xff"),
    "long integer of 255 bytes": lambda: stream(b"\x8a\xff" + b"\x7f" * 255),
    "decimal integer": lambda: b"\x80\x02I" + b"9" * MILLION + b"\n.",
    "decimal long": lambda: b"\x80\x02L" + b"9" * MILLION + b"L\n.",
    "huge text": lambda: stream(b"X\xff\xff\xff\xffabc"),
    "huger text": lambda: stream(b"\x8d" + struct.pack("<Q", 1 << 62) + b"abc"),
    "long text": lambda: stream(b"X" + struct.pack("<I", MILLION) + b"a" * MILLION),
    "huge bytes": lambda: stream(b"\x8e" + struct.pack("<Q", 1 << 62)),
    "bytes": lambda: stream(b"B" + struct.pack("<I", MILLION) + b"a" * MILLION),
    "byte array": lambda: stream(b"\x96" + struct.pack("<Q", 1 << 62), 5),
    "huge frame": lambda: b"\x80\x04\x95" + struct.pack("<Q", 1 << 63) + b"N.",
    "frame in a frame": lambda: (
        b"\x80\x04\x95" + struct.pack("<Q", 20) + b"N\x95" + bytes(20) + b"."
    ),
    "short frame": lambda: b"\x80\x04\x95" + struct.pack("<Q", 1) + b"NNNNNN.",
    # Streams that are none
    "nothing": lambda: b"",
    "protocol alone": lambda: b"\x80",
    "no value": lambda: stream(b""),
    "two values": lambda: stream(b"NN"),
    "open mark": lambda: stream(b"(N"),
    "no mark": lambda: stream(b"t"),
    "no end": lambda: b"\x80\x04N",
    "protocol 6": lambda: stream(b"N", 6),
    "protocol 255": lambda: stream(b"N", 255),
    "protocol twice": lambda: stream(b"\x80\x04N"),
    "bytes after the end": lambda: index_of_one(10) + b"\x00",
    "cut number": lambda: b"\x80\x04G\x00\x00",
    "lone surrogate": lambda: stream(b"\x8c\x03\xed\xa0\x80"),
    "no UTF-8": lambda: stream(b"\x8c\x02\xff\xfe"),
    "text": lambda: b"x" * 10,
    "zip": lambda: b"PK\x03\x04" + bytes(100),
    "zeros": lambda: bytes(MILLION),
    "append to a tuple": lambda: stream(b")Na"),
    "append to a dict": lambda: stream(b"}Na"),
    "item of a list": lambda: stream(b"]NNs"),
    "key without a value": lambda: stream(b"}(NNNu"),
    "state of a list": lambda: stream(b"]Nb"),
    "state of a name": lambda: stream(named("torch", "Size") + b"}b"),
    "state twice": lambda: stream(named("torch", "Size") + b")R}b}b"),
    "another object": lambda: stream(b"}"),
    "another record": lambda: stream(named("torch", "Size") + b")R"),
    "attributes by the million": lambda: stream(
        named("torch.distributed.checkpoint.metadata", "Metadata")
        + b")\x81}("
        + (text("a") + b"N") * 5000
        + b"ub"
    ),
}
HARMLESS: dict[str, Callable[[], bytes]] = {
    # Attributes that nothing reads, and that torch would load too.
    "sound": lambda: index_of_one(10),
    "deep attribute": lambda: beside(lambda _: b")" + (text("padding") + b"\x86") * MILLION),
    "attribute in itself": lambda: beside(lambda place: b"]\x94" + recall(place) + b"a"),
    "laughing attribute": lambda: beside(laughs),
}


def main() -> None:
    pickles = {name: build() for name, build in (CORPUS | HARMLESS).items()}
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S))
    tried: list[str] = []
    sys.addaudithook(lambda event, _: tried.append(event))
    for name, raw in pickles.items():
        tried.clear()
        try:
            said = f"{len(read_index(raw).items)} items"
        except NotAnIndexError as fault:
            said = str(fault)
        print(name, said, *tried, sep="\t")


if __name__ == "__main__":
    main()
