"""Predicates: a small part of SQL, three-valued, one row at a time, whatever the data."""

import math
import operator
import re
import warnings
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegauge.planning.where import PredicateError, checked, columns, expression, parsed

# --- a plain evaluator: one row, Python values, None for NULL

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def finite(value):
    return value if value is not None and math.isfinite(value) else None


def number(value):
    if isinstance(value, str):
        return finite(float(value)) if _NUMBER.fullmatch(value) else None
    return None if value is None else finite(float(value))


def text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def truth(value):
    return {"true": True, "false": False}.get((text(value) or "").lower())


def conjunction(values):
    if False in values:
        return False
    return None if None in values else True


def negation(value):
    return None if value is None else not value


def compare(sign, left, right):
    if left is None or right is None:
        return None
    return {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[sign]


def arithmetic(sign, left, right):
    if left is None or right is None or (sign == "/" and right == 0):
        return None
    try:
        return finite(OPERATIONS[sign](left, right))
    except OverflowError:
        return None


def like(value, pattern):
    signs = {"%": ".*", "_": "."}
    found = "".join(signs.get(sign) or re.escape(sign) for sign in pattern)
    return None if value is None else re.fullmatch(found, value, re.DOTALL) is not None


OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
FUNCTIONS = {
    "ABS": abs,
    "CEIL": lambda value: float(math.ceil(value)),
    "FLOOR": lambda value: float(math.floor(value)),
    "LENGTH": lambda value: float(len(value)),
    "LOWER": str.lower,
    "UPPER": str.upper,
    "TRIM": lambda value: value.strip(" "),
    "negative": lambda value: -value,
}


def case(_, parts):
    half = len(parts) // 2
    pairs = zip(parts[:half], parts[half:], strict=False)
    return next((value for test, value in pairs if test is True), parts[-1])


def within(_, parts):
    return conjunction([compare(">=", parts[0], parts[1]), compare("<=", parts[0], parts[2])])


def any_of(parts):
    return negation(conjunction([negation(part) for part in parts]))


KINDS = {"number": number, "text": text, "condition": truth, None: lambda value: value}
RULES = {
    "AND": lambda _, parts: conjunction(parts),
    "OR": lambda _, parts: any_of(parts),
    "NOT": lambda _, parts: negation(parts[0]),
    "IS NULL": lambda _, parts: parts[0] is None,
    "IS TRUE": lambda _, parts: parts[0] is True,
    "IS FALSE": lambda _, parts: parts[0] is False,
    "IN": lambda _, parts: any_of([compare("=", parts[0], part) for part in parts[1:]]),
    "BETWEEN": within,
    "LIKE": lambda node, parts: like(parts[0], node.value),
    "COALESCE": lambda _, parts: next((part for part in parts if part is not None), None),
    "TRY_CAST": lambda node, parts: KINDS[node.kind](parts[0]),
    "CASE": case,
}


def evaluate(node, row):
    if node.name == "column":
        return KINDS[node.kind](row[node.value])
    if node.name in ("literal", "null"):
        return node.value
    parts = [evaluate(part, row) for part in node.parts]
    if node.name in FUNCTIONS:
        return None if parts[0] is None else FUNCTIONS[node.name](parts[0])
    if node.name in RULES:
        return RULES[node.name](node, parts)
    return arithmetic(node.name, *parts) if node.name in OPERATIONS else compare(node.name, *parts)


# --- random predicates

NUMBERS = st.sampled_from(["x", "y", "1", "0", "-2.5", "1e308", "1e-9", "15"])
TEXTS = st.sampled_from(["s", '"the text"', "'UA'", "''", "'it''s'", "'%'", "' é '", "'true'"])
PATTERNS = st.sampled_from(["'%'", "'U_'", "'%s'", "'_'", "'a.c%'", "'\\%'", "' %'", "''"])


def numbers(inner):
    conditions, numeric, texts = inner
    return st.one_of(
        st.builds("({} {} {})".format, numeric, st.sampled_from("+-*/"), numeric),
        st.builds("(- {})".format, numeric),
        st.builds("{}({})".format, st.sampled_from(["ABS", "floor", "CEIL"]), numeric),
        st.builds("LENGTH({})".format, texts),
        st.builds("COALESCE({}, {}, 7)".format, numeric, numeric),
        st.builds("CASE WHEN {} THEN {} ELSE 3 END".format, conditions, numeric),
        st.builds(
            "CASE WHEN {} THEN 1 WHEN {} THEN {} END".format, conditions, conditions, numeric
        ),
        st.builds("TRY_CAST({} AS DOUBLE)".format, texts),
        st.builds("CAST({} AS DOUBLE)".format, numeric),
    )


def texts_of(inner):
    conditions, _, texts = inner
    return st.one_of(
        st.builds("{}({})".format, st.sampled_from(["LOWER", "UPPER", "TRIM"]), texts),
        st.builds("COALESCE({}, 'none')".format, texts),
        st.builds("CASE WHEN {} THEN {} ELSE 'no' END".format, conditions, texts),
    )


def conditions_of(inner):
    conditions, numeric, texts = inner
    signs = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    return st.one_of(
        st.builds("({} {} {} + 0)".format, numeric, signs, numeric),
        st.builds("({} {} TRIM({}))".format, texts, signs, texts),
        st.builds("({} = ({} AND TRUE))".format, conditions, conditions),
        st.builds("({} AND {} AND {})".format, conditions, conditions, conditions),
        st.builds("({} OR {})".format, conditions, conditions),
        st.builds("NOT {}".format, conditions),
        st.builds("({} IS {})".format, numeric, st.sampled_from(["NULL", "NOT NULL"])),
        st.builds("({} IS {})".format, conditions, st.sampled_from(["TRUE", "NOT FALSE", "NULL"])),
        st.builds("({} IN (1, -2.5, 15))".format, numeric),
        st.builds("({} NOT IN (1, NULL))".format, numeric),
        st.builds("({} IN ('UA', 'é', ''))".format, texts),
        st.builds("({} BETWEEN {} AND 20)".format, numeric, numeric),
        st.builds("({} LIKE {})".format, texts, PATTERNS),
        st.builds("({} NOT LIKE {})".format, texts, PATTERNS),
        st.builds("TRY_CAST({} AS BOOLEAN)".format, texts),
    )


def grown(depth):
    found = st.sampled_from(["f", "TRUE", "FALSE", "NULL"]), NUMBERS, TEXTS
    for _ in range(depth):
        found = (
            st.one_of(found[0], conditions_of(found)),
            st.one_of(found[1], numbers(found)),
            st.one_of(found[2], texts_of(found)),
        )
    return conditions_of(found)


PREDICATES = grown(2).filter(
    lambda text: re.search(r"\b[xyfs]\b", re.sub("'[^']*'", "", text)) or "the text" in text
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "x": st.one_of(st.none(), st.floats(width=64), st.sampled_from([0.0, -0.0, 1.0, 15.0])),
            "y": st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3)),
            "s": st.one_of(
                st.none(), st.sampled_from(["UA", "ua", "", "15", "-2.5", " 1", "nan", "1e400"]),
                st.text(st.sampled_from("abUA%_. é\n0.5e-"), max_size=5),
            ),
            "the text": st.one_of(st.none(), st.sampled_from(["TRUE", "false", "x", "it's"])),
            "f": st.sampled_from([None, True, False]),
        }
    ),
    min_size=1,
    max_size=8,
)  # fmt: skip
SCHEMA = {"x": pl.Float64, "y": pl.Int64, "s": pl.String, "the text": pl.String, "f": pl.Boolean}


def native(rows):
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def as_csv(rows):
    """The same values as a CSV reader gives them: text."""
    texts = [{name: text(value) for name, value in row.items()} for row in rows]
    return pl.DataFrame(texts, schema=dict.fromkeys(SCHEMA, pl.String), orient="row")


def results(frame, predicate):
    return frame.with_columns(result=expression(predicate))["result"].to_list()


@settings(max_examples=250)
@given(PREDICATES, ROWS)
@example("(x / y > 0 + 0)", [dict.fromkeys(SCHEMA) | {"x": 1.0, "y": 0}])
@example("(1 / (1 / y) IS NULL)", [dict.fromkeys(SCHEMA) | {"y": 0}])
@example("(x NOT IN (1, NULL))", [dict.fromkeys(SCHEMA) | {"x": 3.0}])
def test_polars_and_the_plain_evaluator_agree(predicate, rows):
    expected = [evaluate(parsed(predicate), row) is True for row in rows]
    assert results(native(rows), predicate) == expected


@settings(max_examples=80)
@given(PREDICATES, ROWS)
def test_a_csv_file_gives_the_same_rows(predicate, rows):
    rows = [row for row in rows if row["x"] is None or math.isfinite(row["x"])] or [
        dict.fromkeys(SCHEMA)
    ]
    assert results(native(rows), predicate) == results(as_csv(rows), predicate)


@settings(max_examples=80)
@given(PREDICATES, ROWS, st.randoms(use_true_random=False))
def test_the_result_for_a_row_depends_on_no_other_row(predicate, rows, chance):
    order = list(range(len(rows)))
    chance.shuffle(order)
    assert alone_and_shuffled_alike(lambda some: results(native(some), predicate), rows, order)


def alone_and_shuffled_alike(found, rows, order):
    """Whether the result for a row is the same whatever rows stand beside it."""
    whole = found(rows)
    alone = [found([row])[0] for row in rows]
    return alone == whole and found([rows[i] for i in order]) == [whole[i] for i in order]


def test_a_predicate_of_many_rows_would_be_noticed():
    rows = [dict.fromkeys(SCHEMA) | {"x": x} for x in (1.0, 2.0, 4.0)]

    def broken(some):  # what an expression of polars may do, and where() refuses
        return native(some).with_columns(r=pl.col("x") > pl.col("x").mean())["r"].to_list()

    assert not alone_and_shuffled_alike(broken, rows, [2, 1, 0])
    assert alone_and_shuffled_alike(lambda some: results(native(some), "x > 2"), rows, [2, 1, 0])


@settings(max_examples=80)
@given(PREDICATES)
def test_the_canonical_text_is_read_as_the_same_predicate(predicate):
    canonical = checked(predicate)
    assert checked(canonical) == canonical
    assert parsed(canonical) == parsed(predicate)


@given(st.text(max_size=60))
@example("a > '")
@example("\x00")
@example("/*")
@example("{{")
@example("'" * 999)
@example("a IN (" * 500)
@example("NOT " * 900 + "a")
@example("-" * 3000)
def test_no_text_breaks_the_parser(predicate):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        offset = 0
        try:
            checked(predicate)
        except PredicateError as error:
            offset = error.offset
    assert 0 <= offset <= len(predicate)


@pytest.mark.parametrize(
    "values",
    [
        pl.Series([datetime(2013, 1, 1, tzinfo=UTC), None]),
        pl.Series([datetime(2013, 1, 1), None]).cast(pl.Date),
        pl.Series([None, None], dtype=pl.Null),
        pl.Series([1, None], dtype=pl.UInt8),
        pl.Series([1.5, None], dtype=pl.Float32),
        pl.Series(["1.5", None]).cast(pl.Decimal(10, 2)),
        pl.Series([True, None]),
    ],
    ids=lambda series: str(series.dtype),
)
@pytest.mark.parametrize("predicate", ["x > 1", "x = 'UA'", "x", "x IS NOT NULL", "x LIKE '%1%'"])
def test_columns_of_every_type_are_read(values, predicate):
    frame = pl.DataFrame({"x": values})
    found = frame.with_columns(result=expression(predicate))["result"]
    assert found.dtype == pl.Boolean
    assert found.null_count() == 0
    assert found[1] is False


REFUSED = {
    "sum(x) > 1": "aggregate",
    "count(*) > 1": "aggregate",
    "x > 1 AND max(y) OVER () > 3": "window",
    "row_number() OVER (ORDER BY x) > 1": "window",
    "x > (SELECT 1)": "subquery",
    "x IN (SELECT 1)": "IN with 'query'",
    "EXISTS (SELECT 1)": "subquery",
    "SELECT 1": "query",
    "random() > 0.5": "noise that nobody accounts for",
    "now() > x": "NOW",
    "current_date > x": "CURRENTDATE",
    "other.x = 1": "COLUMN with 'table'",
    "x[1] = 1": "BRACKET",
    "x -> 'a' = 'b'": "JSONEXTRACT",
    "CAST(x AS INTEGER) = 1": "DOUBLE, VARCHAR or BOOLEAN",
    "x = y": "columns alone",
    "x + 1": "Expected a condition, got a number",
    "x + 'a' > 1": "Expected a number, got a text",
    "f > TRUE": "no|order",
    "x LIKE s": "literal after LIKE",
    "x LIKE 'a' ESCAPE '!'": "ESCAPE",
    "x IN (y, 1)": "list of literals",
    "x; DROP TABLE y": "Expected one condition, got 2",
    "": "1 to 4000 characters",
    "1 = 1": "reads a column",
    "x > 1e999": "finite double",
    "x > ?": "PLACEHOLDER",
    "x IS DISTINCT FROM 1": "NULLSAFENEQ",
    "x ~ 'a'": "REGEXP",
    "x AS y": "ALIAS",
    "1 = 'a'": "of one kind",
    "x > 1 OR": "Expected a condition in SQL",
    "x MOD 2 = 0": "Expected a condition",
    "unknown(x) > 1": "UNKNOWN",
    "x / (y / (x / (y / (x / (y / (x / (y / (x / (y / (x / (y / (x / (y / x))))))))))))) > 1": "60",
}


@pytest.mark.parametrize(("predicate", "message"), list(REFUSED.items()))
def test_what_is_not_listed_is_refused(predicate, message):
    with pytest.raises(PredicateError, match=message):
        checked(predicate)


def test_the_place_of_what_is_refused_is_told():
    with pytest.raises(PredicateError) as caught:
        checked("x > 1 AND now() > 3")
    assert caught.value.offset == 10


def test_columns_are_found():
    assert columns("x > 1 OR \"the text\" = 'a' AND x IS NULL") == ("the text", "x")


@pytest.mark.parametrize(
    ("predicate", "count"),
    [("dep_delay IS NOT NULL", 2), ("dep_delay > 15", 1), ("NOT dep_delay > 15", 1)],
)
def test_null_rows_count_for_neither_a_condition_nor_its_opposite(predicate, count):
    frame = pl.DataFrame({"dep_delay": [None, 3, 40]})
    assert frame.filter(expression(predicate)).height == count
