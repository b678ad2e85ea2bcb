"""Units, guarantees and the ledger: what is promised, to whom, and what it has cost."""
