"""Configs for the tests of this folder."""

FLIGHTS = """\
sources: [flights.parquet]
event_time: time_hour
step: 1h
start: 2013-01-01T05:00:00Z
end: 2014-01-01T05:00:00Z
privacy:
  unit: event
  neighboring_relation: add_or_remove_one
  epsilon: 1.0
  delta: 1.0e-9
gauges:
  departures:
    count: {where: "dep_delay IS NOT NULL"}
    by: {carrier: [UA, B6, EV, DL, AA, MQ]}
    other: other
    views: [step, running, 7d, {window: 1d, every: 1d}, {half_life: 1d}]
    anticipate: [30d]
    budget_weight: 1
about: {title: Departures from New York, purpose: To see when planes leave}
store: flights.tidegauge
public: public/
sinks: [{parquet: {path: releases.parquet, views: [window_7d]}}]
"""

SMALL = """\
sources: [flights.parquet]
event_time: time_hour
step: 1h
start: 2013-01-01T00:00:00Z
privacy: {unit: event, epsilon: 1, delta: 1e-9}
gauges: {departures: count}
"""

BASKETS = """\
sources: ["baskets-*.csv.gz", late.jsonl]
event_time: at
timezone: America/New_York
step: 1d
start: 2017-01-01T00:00:00-05:00
end: 2018-01-01T00:00:00-05:00
privacy:
  unit: {id: household, max_contributions: 20, per: 1w}
  neighboring_relation: replace_one
  rho: 0.5
gauges:
  baskets: {count: , by: {department: [GROCERY, "NO"], store: ["01", "02"]}, other: drop}
  money:
    sum: {column: sales_value, bounds: [-10, 99.99], round_to: 0.01, where: "store = '01'"}
    views:
      week: 7d
      sundays: {window: 1w, every: 1w}
      smooth: {polynomial: 1.5}
      fast: {factor: 0.5}
    budget_weight: 3
    max_per_step: 100000
"""

RECORDS = """\
sources: "-"
step: record
end: 1000
privacy: {unit: event, epsilon: 0.5}
gauges:
  clicks: {count: {where: clicked}, views: [running, 100, {half_life: 12.5}]}
"""

ALL = {"flights": FLIGHTS, "small": SMALL, "baskets": BASKETS, "records": RECORDS}
