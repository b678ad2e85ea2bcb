"""The gauge: where noise meets data, in one file."""
