"""Which number type each storage of a torch zip holds, from its `data.pkl`, without unpickling it.

The pickle names a storage as `('storage', torch.FloatStorage, '0', 'cpu', 4096)`. Its opcodes are
walked for those tuples; nothing in it is built, called or imported.
"""

from __future__ import annotations

import pickletools
import re
from collections import deque

PICKLE_LIMIT_BYTES = 16 << 20
"""About 100,000 tensors."""

_DTYPES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
}
_CLASS = re.compile(rb"ctorch\n(\w+Storage)\n")


def storage_dtypes(pickle: bytes) -> dict[str, str]:
    """Storage key → dtype, of those with floating types. What cannot be read is left out."""
    kinds = set(_CLASS.findall(pickle))
    if not kinds & {name.encode() for name in _DTYPES}:
        return {}
    try:
        return _walked(pickle)
    except (ValueError, IndexError):
        return {}


def _walked(pickle: bytes) -> dict[str, str]:
    """Follow names through the memo: an opcode's value, or what an earlier one remembered."""
    found: dict[str, str] = {}
    memo: dict[int, object] = {}
    recent: deque[object] = deque([None] * 6, maxlen=6)
    """The last values pushed: when a storage is named, the five of its tuple and the tuple."""
    for opcode, argument, _ in pickletools.genops(pickle):
        match opcode.name:
            case "BINPUT" | "LONG_BINPUT" if isinstance(argument, int):
                memo[argument] = recent[-1]
            case "MEMOIZE":
                memo[len(memo)] = recent[-1]
            case "BINGET" | "LONG_BINGET" if isinstance(argument, int):
                recent.append(memo.get(argument))
            case "BINPERSID":
                dtype = _STORAGE_NAMES.get(str(recent[1]))
                if dtype:
                    found[str(recent[2])] = dtype
                recent.append(None)
            case _:
                recent.append(argument)
    return found


_STORAGE_NAMES = {f"torch {name}": dtype for name, dtype in _DTYPES.items()}
