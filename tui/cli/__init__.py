"""argv to command. The only place that prints, and the only one that chooses an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from tui.cli.arguments import parsed
from tui.errors import ExitCode, MilepostError
from tui.model.text import harmless


def run(argv: Sequence[str]) -> int:
    """Run one command; returns its exit code. Errors for a person go to stderr."""
    try:
        arguments = parsed(argv)
        code = int(arguments.command(arguments))
        sys.stdout.flush()
    except MilepostError as refusal:
        # A message may quote what was typed, a file's name or a container's.
        lines = (harmless(line) for line in f"milepost: {refusal}".split("\n"))
        print("\n".join(lines), file=sys.stderr)
        return int(refusal.exit_code)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader went away (`milepost status | head`): what is left to print has no reader.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.WELL)
    else:
        return code
