"""Connectors: files and standard input as sources of events."""
