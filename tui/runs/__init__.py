"""Find a run and know how it was started."""
