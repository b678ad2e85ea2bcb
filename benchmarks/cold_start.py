"""Cold starts in fresh processes: the import alone, and import to first block, caches warm."""

import subprocess
import sys

from timing import is_quick, least

BLOCK = """
import numpy as np, tidegauge as tg
gauge = tg.Gauge(views=[tg.Running(), tg.Window(24), tg.Exponential(half_life=24)], unit="event",
                 cells=1000, horizon=4096, epsilon=1.0, delta=1e-9)
gauge.update_many(np.ones((64, 1000), np.int64))
"""
SCRIPTS = {
    "python alone": "pass",
    "import numpy": "import numpy",
    "import tidegauge": "import tidegauge",
    "import tidegauge, make the guarantee": "import tidegauge as tg; tg.ApproxDP(1, 1e-9)",
    "import to first block of 64 x 1000": BLOCK,
}


def main():
    quick = is_quick(__doc__)
    calls = {
        name: (lambda script=script: subprocess.run([sys.executable, "-c", script], check=True))
        for name, script in SCRIPTS.items()
    }
    if not quick:
        least(calls, repeats=1)  # fills the caches of compiled kernels
    for name, seconds in least(calls, repeats=1 if quick else 5).items():
        print(f"{name}: {seconds:.3f} s")


if __name__ == "__main__":
    main()
