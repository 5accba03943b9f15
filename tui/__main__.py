"""`python -m tui` and the `milepost` command."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line and end the process with its exit code.

    Without the interpreter's own teardown: it takes a tenth of a second, and a thread that hangs
    on a disk or in a driver can make it wait or fail.
    """
    from tui.cli import run

    code = run(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
