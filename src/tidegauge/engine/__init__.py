"""The engine: from a source to the store (private), from the store to the public folder."""
