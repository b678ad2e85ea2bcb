"""The engine: clock, totals, bounding, store and publication of a run."""
