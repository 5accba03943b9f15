"""The child process that verifies one checkpoint: `verify_reader FOLDER`, one line out a moment.

A process of its own, so that two threads of checksums take nothing from the screen and the whole
can be ended in the middle of a read. The result goes to the ledger, not to the asker.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from tui.checkpoints.ledger import remembered
from tui.checkpoints.reading import NICENESS, be_polite
from tui.checkpoints.verify import VerifyResult, verify
from tui.errors import MilepostError
from tui.probes.child import die_with_parent, own_output


def main() -> None:
    """Tell how far it is, and at last why there is no result, or that there is one."""
    die_with_parent()
    be_polite()
    _be_a_polite_session()
    answers = own_output()
    began = time.monotonic()

    def report(done: int, total: int) -> None:
        _tell(answers, done=done, total=total, seconds=time.monotonic() - began)

    path = Path(sys.argv[1])
    try:
        fault = _why_none(path, verify(path, report=report))
    except (MilepostError, OSError) as error:
        fault = str(error)
    _tell(answers, fault=fault)


def _be_a_polite_session() -> None:
    """We lead a session, and Linux may weigh sessions first, then what is nice within each."""
    with suppress(OSError):  # a kernel without that, or a container that hides it
        Path("/proc/self/autogroup").write_text(str(NICENESS), encoding="ascii")


def _why_none(path: Path, result: VerifyResult) -> str:
    """Why the ledger has no result of this verify; empty where it has."""
    kept = remembered(path)
    if result.verification is not None and kept == result.verification:
        return ""
    lines = (*result.faults, *result.unread, *reversed(result.notes))
    return next(iter(lines), "it changed while it was read")


def _tell(answers: TextIO, **told: object) -> None:
    answers.write(json.dumps(told) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
