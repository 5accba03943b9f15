"""milepost: watch a long Miles run from a terminal, and know what a crash would cost."""

__version__ = "0.1.0"
