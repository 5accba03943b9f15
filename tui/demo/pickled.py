"""Pickle streams that name classes this process cannot import.

`pickle` refuses to write a class it cannot import, and the simulated run has no torch. The writer
knows the values a checkpoint holds and no more; it keeps pickle's own order of opcodes and memo
entries, so that small streams come out byte for byte as torch writes them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Named:
    """A class or function, by name only."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class Called:
    """What `function(*arguments)` returns."""

    function: Named
    arguments: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Built:
    """A new object of `kind`, its state set if it has one."""

    kind: Named
    state: object = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A reference to something kept outside the stream, such as a tensor's storage."""

    reference: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Pairs:
    """A dict, given as pairs where its keys cannot be hashed here."""

    items: tuple[tuple[object, object], ...]


def pickled(value: object, *, protocol: int) -> bytes:
    """`value` as a pickle of protocol 2 (`torch.save`) or 4 (a checkpoint's index)."""
    body = bytearray()
    _Writer(body, protocol).write(value)
    body += b"."
    if protocol < 4:
        return b"\x80\x02" + bytes(body)
    return b"\x80\x04\x95" + struct.pack("<Q", len(body)) + bytes(body)


class _Writer:
    def __init__(self, body: bytearray, protocol: int) -> None:
        self._body = body
        self._modern = protocol >= 4
        self._places: dict[str | Named, int] = {}
        self._memo_size = 0

    def write(self, value: object) -> None:
        if isinstance(value, bool | None):
            self._body += {None: b"N", True: b"\x88", False: b"\x89"}[value]
        elif isinstance(value, int):
            self._body += _integer(value)
        elif isinstance(value, float):
            self._body += b"G" + struct.pack(">d", value)
        elif isinstance(value, str | Named):
            self._write_once(value)
        elif isinstance(value, tuple):
            self._write_tuple(value)
        elif isinstance(value, list):
            self._write_list(value)
        elif isinstance(value, dict):
            self._write_pairs(tuple(value.items()))
        else:
            self._write_object(value)

    def _remember(self) -> None:
        place, self._memo_size = self._memo_size, self._memo_size + 1
        if self._modern:
            self._body += b"\x94"
        else:
            self._body += b"q" + bytes([place]) if place < 256 else b"r" + struct.pack("<I", place)

    def _write_once(self, value: str | Named) -> None:
        place = self._places.get(value)
        if place is not None:
            self._body += b"h" + bytes([place]) if place < 256 else b"j" + struct.pack("<I", place)
            return
        if isinstance(value, str):
            self._write_text(value)
        elif self._modern:
            self._write_once(value.module)
            self._write_once(value.name)
            self._body += b"\x93"
        else:
            self._body += f"c{value.module}\n{value.name}\n".encode()
        self._places[value] = self._memo_size
        self._remember()

    def _write_text(self, text: str) -> None:
        raw = text.encode()
        if self._modern and len(raw) < 256:
            self._body += b"\x8c" + bytes([len(raw)]) + raw
        else:
            self._body += b"X" + struct.pack("<I", len(raw)) + raw

    def _write_tuple(self, items: tuple[object, ...]) -> None:
        if not items:
            self._body += b")"
            return
        if len(items) > 3:
            self._body += b"("
        for item in items:
            self.write(item)
        self._body += b"\x85\x86\x87"[len(items) - 1 : len(items)] if len(items) <= 3 else b"t"
        self._remember()

    def _write_list(self, items: list[object]) -> None:
        self._body += b"]"
        self._remember()
        if len(items) > 1:
            self._body += b"("
        for item in items:
            self.write(item)
        self._body += (b"", b"a", b"e")[min(len(items), 2)]

    def _write_pairs(self, items: tuple[tuple[object, object], ...]) -> None:
        self._body += b"}"
        self._remember()
        if len(items) > 1:
            self._body += b"("
        for key, value in items:
            self.write(key)
            self.write(value)
        self._body += (b"", b"s", b"u")[min(len(items), 2)]

    def _write_object(self, value: object) -> None:
        match value:
            case Called(function, arguments):
                self.write(function)
                self.write(arguments)
                self._body += b"R"
                self._remember()
            case Built(kind, state):
                self.write(kind)
                self._body += b")\x81"
                self._remember()
                if state is not None:
                    self.write(state)
                    self._body += b"b"
            case Pairs(items):
                self._write_pairs(items)
            case Stored(reference):
                self.write(reference)
                self._body += b"Q"
            case _:
                raise TypeError(f"a checkpoint holds no {type(value).__name__}")


def _integer(value: int) -> bytes:
    if 0 <= value < 1 << 8:
        return b"K" + bytes([value])
    if 0 <= value < 1 << 16:
        return b"M" + struct.pack("<H", value)
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw
