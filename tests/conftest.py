"""One hypothesis profile for all tests: the same examples in every run. One thread a process."""

import os

# Two workers with two threads each wait for one another: four times the time for dense matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is first imported

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fixed", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fixed")
