"""The papers' systems by name, thin over the shared strategies and noise."""
