"""The journal of a run as a file, on a disk that does not take all of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tui.model.journal import Remark
from tui.model.snapshot import Level
from tui.runs.journal import Journal


def test_what_a_disk_takes_only_in_part_is_an_error_and_the_next_is_whole(tmp_path: Path) -> None:
    program = """
import resource, sys
from pathlib import Path
from tui.model.journal import Remark
from tui.model.snapshot import Level
from tui.runs.journal import Journal
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
Journal(Path(sys.argv[1])).remark(
    Remark(at=1.0, code="x", news="said", level=Level.INFO, line="y" * 200)
)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False
    )
    journal = Journal(tmp_path)
    assert "No space left on device" in ran.stderr
    assert list(journal.remarks()) == []
    journal.remark(Remark(at=2.0, code="z", news="said", level=Level.INFO, line="whole"))
    assert [each.line for each in journal.remarks()] == ["whole"]
