"""A slow reader in plain Python: what every fast path has to agree with."""

import csv as python_csv
import json
import re
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import numpy as np

python_csv.field_size_limit(1 << 21)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIELD = re.compile(r'"[^"]*(?:""[^"]*)*"|[^",]*')


def csv_rows(data):
    """Rows of a CSV file as dicts, None for an unreadable record."""
    lines = data.split(b"\n")
    last = lines.pop()  # no newline: half written
    header, rows = None, []
    for line in lines:
        line = line.rstrip(b"\r")
        line = line if header else unmarked(line)
        if not line:
            rows += [None] if header else []
            continue
        row = _csv_row(line)
        if header is None:
            header = row
        elif row is None or len(row) != len(header):
            rows.append(None)
        else:
            rows.append({k: v or None for k, v in zip(header, row, strict=True)})
    return rows + ([None] if last and header else [])


def unmarked(line):
    """A line without the byte order marks that it begins with."""
    return re.sub(rb"^(?:\xef\xbb\xbf)+", b"", line)


def _csv_row(line):
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return None
    if "�" in text or not re.fullmatch(f"(?:{FIELD.pattern})(?:,(?:{FIELD.pattern}))*", text):
        return None
    return next(python_csv.reader([text], strict=True)) if "\r" not in text else _split(text)


def _split(text):
    """Fields of a line with a carriage return inside, at which Python's reader would stop."""
    fields = [match[0] for match in re.finditer(f"(?<![^,])(?:{FIELD.pattern})(?=,|$)", text)]
    return [f[1:-1].replace('""', '"') if f[:1] == '"' else f.removesuffix("\r") for f in fields]


def jsonl_rows(data):
    """Rows of JSON lines as dicts, None for an unreadable record."""
    rows = []
    if data == b"\xef\xbb\xbf":
        return []
    *lines, last = data.split(b"\n")
    for line in [*lines, last] if last else lines:
        line = unmarked(line.rstrip(b"\r"))
        rows.append(_json_row(line) if line else None)
    return rows


def _json_row(line):
    def refuse(_):
        raise ValueError

    try:
        row = json.loads(line.decode(), parse_int=str, parse_float=str, parse_constant=refuse)
        if not isinstance(row, dict) or b"\xef\xbf\xbd" in line:
            return None
        names = {True: "true", False: "false"}
        row = {k: names[v] if isinstance(v, bool) else v for k, v in row.items()}
        row = {k: v if isinstance(v, str) else None for k, v in row.items()}
        for value in row.values():
            (value or "").encode()
        return row
    except (ValueError, RecursionError):
        return None


def step_of(row, plan):
    """The step of a row with an ISO stamp of 20 or more characters with a zone, or None."""
    text = ((row or {}).get(plan.time.column) or "").strip(" \t")
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)", text):
        return None
    try:
        stamp = datetime.fromisoformat(text)
    except ValueError:
        return None
    us = (stamp - EPOCH) // timedelta(microseconds=1)
    return (us - plan.clock.start_us) // plan.clock.step_us


def slow_totals(rows, plan, first, last):
    """Exact totals, row by row; every predicate is ``<column> IS NOT NULL``."""
    sums = {g.name: defaultdict(int) for g in plan.gauges}
    for row in rows:
        step = step_of(row, plan)
        if step is None or not first <= step < last:
            continue
        for gauge in plan.gauges:
            amount, cell = _amount(row, gauge), _cell(row, gauge)
            if amount is not None and cell is not None and _counts(row, gauge):
                sums[gauge.name][step - first, cell] += amount
    result = {}
    for gauge in plan.gauges:
        result[gauge.name] = np.zeros((last - first, len(gauge.cells)), np.int64)
        for place, amount in sums[gauge.name].items():
            result[gauge.name][place] = amount
    return result


def _counts(row, gauge):
    return gauge.where is None or all(
        row.get(column) is not None for column in re.findall(r'"(\w+)"', gauge.where)
    )


def _amount(row, gauge):
    if gauge.kind == "count":
        return 1
    text = (row.get(gauge.column) or "").strip(" \t")
    if not re.fullmatch(r"[-+0-9.eE]+", text) or len(text) > 64:
        return None
    try:
        value = Fraction(Decimal(text))
    except InvalidOperation:
        return None
    return min(max(round(value / gauge.round_to), gauge.low), gauge.high)


def _cell(row, gauge):
    place = []
    for column, values in gauge.by:
        value = row.get(column)
        if value not in values:
            if gauge.other is None:
                return None
            value = gauge.other
        place.append(value)
    return gauge.cells.index(tuple(place))
