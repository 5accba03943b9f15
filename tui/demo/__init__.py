"""A simulated run. Knows nothing of the rest of milepost."""
