"""A small shop with a door counter: what the end-to-end tests publish."""

import random
from datetime import UTC, datetime, timedelta

START = datetime(2025, 1, 6, tzinfo=UTC)

CONFIG = """\
sources: [visits.csv]
event_time: time
step: 1h
start: 2025-01-06T00:00:00Z
end: 2025-01-13T00:00:00Z
privacy: {unit: event, epsilon: 1.0, delta: 1.0e-9}
gauges:
  visits: {count: {}, by: {shop: [north, south]}, views: [step, running, 1d]}
store: visits.tidegauge
public: public
mark: visits.mark
"""
STEPS_ALONE = CONFIG.replace("[step, running, 1d]", "[step]")
"""For what goes on around a plan, in many processes: to fit one takes each another second."""


def rows_of_visits(seed=0, days=7, each_hour=9):
    """Lines of a CSV file without its head: time and shop."""
    made = random.Random(seed)
    rows = []
    for hour in range(24 * days):
        for _ in range(made.randrange(each_hour)):
            time = START + timedelta(hours=hour, seconds=made.randrange(3600))
            rows.append(f"{time:%Y-%m-%dT%H:%M:%SZ},{made.choice(['north', 'south', 'east'])}")
    made.shuffle(rows)
    return rows


def write_visits(folder, rows, config=CONFIG):
    """Write the config and its events into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "visits.csv").write_text("\n".join(["time,shop", *rows]) + "\n")
    (folder / "visits.yaml").write_text(config)
    return folder
