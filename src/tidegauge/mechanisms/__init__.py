"""The gauge: where noise meets data, in one function."""
