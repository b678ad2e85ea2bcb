"""Live statistics from sensitive event streams under one differential-privacy guarantee."""
