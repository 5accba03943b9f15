"""A pickle machine that imports nothing and calls nothing: what it makes are inert values.

It knows the opcodes with which a pickler of protocol 2 to 5 writes an index, and the names that
torch and Megatron put into one. All else is refused, as are streams that no pickler writes. What
would be a class or a call becomes a `Record`: a name, arguments and a state, for others to look at.

Time and memory are bounded by the length of the stream, which the caller bounds. Values may share
parts, nest to any depth and hold themselves: readers follow a fixed path and never a value's own
shape, and nothing here compares, hashes or prints one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import repeat

from tui.checkpoints.index import NotAnIndexError
from tui.checkpoints.inert import NAMES, Entries, Named, Record

BYTES_A_CONTAINER = 4
"""A stream has more bytes than this for each tuple, list, dict and record; real ones, 7 to 16."""
SPARE_CONTAINERS = 1024
STACK_LIMIT = 16_384
"""Values waiting for the one that takes them; a pickler writes at most 1,000 pairs at a time."""
MARK_LIMIT = 64
SMALLEST_FRAME_BYTES = 4
"""A pickler leaves a shorter end without a frame, and only longer texts than the limit below."""
TEXT_LIMIT_BYTES = 65_535
INTEGER_LIMIT_BYTES = 9
"""Any file offset, and every unsigned 64-bit value."""
_TOO_EARLY = "not an index: it ends too early"
_ROUND = 4096
"""Steps between two looks at the limits."""


def unpickle(raw: bytes) -> object:
    """The one value that `raw` holds. Raises `NotAnIndexError` for whatever no index holds."""
    if raw[:1] != b"\x80":
        raise NotAnIndexError(
            "not an index: it is no pickle" if raw else "not an index: it is empty"
        )
    machine = _Machine(raw)
    try:
        while True:
            for _ in repeat(None, _ROUND):
                code = raw[machine.at]
                machine.at += 1
                if code == _STOP:
                    return machine.result()
                _STEPS[code](machine)
            machine.check_limits()
    except IndexError:
        if machine.at < len(raw):
            raise NotAnIndexError(
                f"not an index: step before byte {machine.at:,} lacks a value"
            ) from None
        raise NotAnIndexError(_TOO_EARLY) from None
    except UnicodeDecodeError:
        raise NotAnIndexError(
            f"not an index: text before byte {machine.at:,} is no UTF-8"
        ) from None


class _Machine:
    """Stack, memo and place. `stack` holds what came after the newest mark, `below` the rest."""

    __slots__ = ("at", "below", "containers", "frame_end", "limit", "memo", "raw", "stack")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.at = 0
        self.frame_end = 0
        self.stack: list[object] = []
        self.below: list[list[object]] = []
        self.memo: list[object] = []
        self.containers = 0
        self.limit = SPARE_CONTAINERS + len(raw) // BYTES_A_CONTAINER

    def refused(self, why: str) -> NotAnIndexError:
        return NotAnIndexError(f"not an index: {why} before byte {self.at:,}")

    def check_limits(self) -> None:
        if self.containers > self.limit or len(self.memo) > 2 * self.limit:
            raise self.refused("more values than its length accounts for")
        if len(self.stack) > STACK_LIMIT:
            raise self.refused(f"more than {STACK_LIMIT:,} values that nothing takes")

    def result(self) -> object:
        if self.below or len(self.stack) != 1:
            raise self.refused("an end with values left over")
        if self.at != len(self.raw):
            raise self.refused("an end with bytes left over")
        if self.frame_end and not 0 <= self.at - self.frame_end < SMALLEST_FRAME_BYTES:
            raise self.refused("an end that its frames do not have")
        return self.stack.pop()

    def taken(self, length: int) -> bytes:
        """The next bytes of the stream."""
        start = self.at
        self.at = start + length
        if self.at > len(self.raw):
            raise IndexError
        return self.raw[start : self.at]

    def number(self, length: int) -> int:
        return int.from_bytes(self.taken(length), "little")

    def unmarked(self) -> list[object]:
        """What came after the newest mark, which goes."""
        values = self.stack
        self.stack = self.below.pop()
        return values


def _proto(machine: _Machine) -> None:
    if machine.at != 1 or not 2 <= machine.number(1) <= 5:
        raise machine.refused("a protocol that no index has")


def _frame(machine: _Machine) -> None:
    length = machine.number(8)
    if machine.at - 9 != (machine.frame_end or 2):
        raise machine.refused("a frame out of place")
    if length > len(machine.raw) - machine.at:
        raise NotAnIndexError(_TOO_EARLY)
    machine.frame_end = machine.at + length


def _mark(machine: _Machine) -> None:
    if len(machine.below) >= MARK_LIMIT:
        raise machine.refused(f"more than {MARK_LIMIT} open brackets")
    machine.check_limits()
    machine.below.append(machine.stack)
    machine.stack = []


def _constant(value: object) -> _Step:
    def push(machine: _Machine) -> None:
        machine.stack.append(value)

    return push


def _unsigned(length: int) -> _Step:
    def push(machine: _Machine) -> None:
        machine.stack.append(machine.number(length))

    return push


def _byte(machine: _Machine) -> None:
    machine.stack.append(machine.raw[machine.at])
    machine.at += 1


def _signed(machine: _Machine) -> None:
    machine.stack.append(int.from_bytes(machine.taken(4), "little", signed=True))


def _long(machine: _Machine) -> None:
    length = machine.number(1)
    if length > INTEGER_LIMIT_BYTES:
        raise machine.refused("an integer longer than any offset")
    machine.stack.append(int.from_bytes(machine.taken(length), "little", signed=True))


def _float(machine: _Machine) -> None:
    machine.stack.append(struct.unpack(">d", machine.taken(8))[0])


def _short_text(machine: _Machine) -> None:
    start = machine.at + 1
    machine.at = start + machine.raw[machine.at]
    if machine.at > len(machine.raw):
        raise IndexError
    machine.stack.append(machine.raw[start : machine.at].decode())


def _text(machine: _Machine) -> None:
    length = machine.number(4)
    if length > TEXT_LIMIT_BYTES:
        raise machine.refused("a text longer than any name")
    machine.stack.append(machine.taken(length).decode())


def _tuple_of(length: int) -> _Step:
    def gather(machine: _Machine) -> None:
        stack = machine.stack
        if len(stack) < length:
            raise IndexError
        machine.containers += 1
        stack[-length:] = [tuple(stack[-length:])]

    return gather


def _tuple_of_one(machine: _Machine) -> None:
    machine.containers += 1
    machine.stack[-1] = (machine.stack[-1],)


def _tuple(machine: _Machine) -> None:
    values = machine.unmarked()
    machine.containers += 1
    machine.stack.append(tuple(values))


def _list(machine: _Machine) -> None:
    machine.containers += 1
    machine.stack.append([])


def _dict(machine: _Machine) -> None:
    machine.containers += 1
    machine.stack.append(Entries())


def _append(machine: _Machine) -> None:
    value = machine.stack.pop()
    _extend(machine, list, [value])


def _appends(machine: _Machine) -> None:
    values = machine.unmarked()
    _extend(machine, list, values)


def _set_item(machine: _Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    _extend(machine, Entries, [key, value])


def _set_items(machine: _Machine) -> None:
    values = machine.unmarked()
    if len(values) % 2:
        raise machine.refused("a key without a value")
    _extend(machine, Entries, values)


def _extend(machine: _Machine, kind: type[list[object]], values: list[object]) -> None:
    target = machine.stack[-1]
    if type(target) is not kind:
        raise machine.refused("values added to what cannot hold them")
    assert isinstance(target, list)
    target.extend(values)


def _remember(machine: _Machine) -> None:
    machine.memo.append(machine.stack[-1])


def _remember_at(length: int) -> _Step:
    def remember(machine: _Machine) -> None:
        if machine.number(length) != len(machine.memo):
            raise machine.refused("a memo out of order")
        machine.memo.append(machine.stack[-1])

    return remember


def _recall(machine: _Machine) -> None:
    machine.stack.append(machine.memo[machine.raw[machine.at]])
    machine.at += 1


def _recall_far(machine: _Machine) -> None:
    machine.stack.append(machine.memo[machine.number(4)])


def _global_lines(machine: _Machine) -> None:
    lines = []
    for _ in range(2):
        end = machine.raw.find(b"\n", machine.at, machine.at + 256)
        if end < 0:
            raise machine.refused("a name without an end")
        lines.append(machine.taken(end - machine.at).decode())
        machine.at += 1
    _push_named(machine, *lines)


def _global(machine: _Machine) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    _push_named(machine, module, name)


def _push_named(machine: _Machine, module: object, name: object) -> None:
    if type(module) is not str or type(name) is not str:
        raise machine.refused("a name that is no text")
    if f"{module}.{name}" not in NAMES:
        raise NotAnIndexError(f"not an index: it names {module[:40]!a}, {name[:40]!a}")
    machine.stack.append(Named(f"{module}.{name}"))


def _record(machine: _Machine) -> None:
    """What would be a call, or a new object."""
    arguments, kind = machine.stack.pop(), machine.stack.pop()
    if type(kind) is not Named or type(arguments) is not tuple:
        raise machine.refused("a call of what cannot be called")
    machine.containers += 1
    machine.stack.append(Record(kind.name, arguments))


def _build(machine: _Machine) -> None:
    state = machine.stack.pop()
    target = machine.stack[-1]
    if type(target) is not Record or target.state is not None:
        raise machine.refused("a state set on what has none")
    target.state = state


def _refuse(machine: _Machine) -> None:
    code = machine.raw[machine.at - 1]
    raise machine.refused(f"opcode 0x{code:02x}, which no index has,")


_Step = Callable[[_Machine], None]
_STOP = ord(".")
_KNOWN: dict[bytes, _Step] = {
    b"\x80": _proto,
    b"\x95": _frame,
    b"(": _mark,
    b"N": _constant(None),
    b"\x88": _constant(True),
    b"\x89": _constant(False),
    b"K": _byte,
    b"M": _unsigned(2),
    b"J": _signed,
    b"\x8a": _long,
    b"G": _float,
    b"\x8c": _short_text,
    b"X": _text,
    b")": _constant(()),
    b"\x85": _tuple_of_one,
    b"\x86": _tuple_of(2),
    b"\x87": _tuple_of(3),
    b"t": _tuple,
    b"]": _list,
    b"a": _append,
    b"e": _appends,
    b"}": _dict,
    b"s": _set_item,
    b"u": _set_items,
    b"\x94": _remember,
    b"q": _remember_at(1),
    b"r": _remember_at(4),
    b"h": _recall,
    b"j": _recall_far,
    b"c": _global_lines,
    b"\x93": _global,
    b"R": _record,
    b"\x81": _record,
    b"b": _build,
}
_STEPS: tuple[_Step, ...] = tuple(_KNOWN.get(bytes([code]), _refuse) for code in range(256))
