"""One view of the public folder, over all published steps, in the units of the column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tidegauge.checks import integer
from tidegauge.engine.releases import Numbers, Published
from tidegauge.errors import InvalidParameter
from tidegauge.planning.fields import RANKED
from tidegauge.planning.parts import MOST_CELLS
from tidegauge.planning.widest import ratio_to_bound
from tidegauge.strategies.strategy import Float64, Int64

if TYPE_CHECKING:
    import polars as pl

__all__ = ["PublishedView"]


@dataclass(frozen=True, eq=False, repr=False)
class PublishedView:
    """One view of one gauge over all published steps; everything in the units of the column.

    Attributes:
        view: Which one.
        grains: The decoded values at every step, shape (steps, cells), in grains; of a mean, sums
            around the middle of the bounds, then counts as grains: shape (steps, 2 cells).
    """

    view: Published
    grains: Float64

    @property
    def name(self) -> str:
        """The view's name."""
        return self.view.name

    @property
    def cells(self) -> tuple[tuple[str, ...], ...]:
        """The cells, each a value for each of the ``by`` columns."""
        return self.view.cells

    @cached_property
    def steps(self) -> Int64:
        """The published steps, counted from 1."""
        return self.view.steps(0, len(self.grains))

    @property
    def value(self) -> Float64:
        """Unbiased estimates, which may be negative; shape (published steps, cells).

        Of a mean its estimate between the bounds; NaN where the noisy count is too small.
        """
        return self.numbers.value

    @cached_property
    def numbers(self) -> Numbers:
        """Values with the ends of their intervals, and what stands beside them."""
        return self.view.numbers(self.steps, self.grains[self.steps - 1])

    @property
    def noise_std(self) -> Float64:
        """Standard deviation of the noise, the same in every cell; shape (published steps,).

        Of a mean, which is a ratio: NaN.
        """
        return self.view.noise_std(self.steps)

    @property
    def half_width(self) -> Float64:
        """Half the interval's width; shape (published steps,). Of a mean NaN: see ``numbers``."""
        return self.view.half_width(self.steps)

    @property
    def complete(self) -> Any:
        """False while a window is not yet full; shape (published steps,)."""
        return self.view.complete(self.steps)

    @property
    def is_planned(self) -> bool:
        """Whether the plan publishes this decay."""
        return any(decay == self.view.decay for _, decay in self.view.gauge.views)

    def __repr__(self) -> str:
        gauge, steps = self.view.gauge.name, len(self.grains)
        return f"PublishedView({self.name!r} of {gauge!r}, {steps} steps, {len(self.cells)} cells)"

    def renamed(self, name: str) -> PublishedView:
        """Return the same view under another name."""
        return replace(self, view=replace(self.view, name=name))

    def largest(self, top: int | None) -> PublishedView:
        """Return the same view with its largest cells at each step, ranked; None: with all cells.

        Its intervals cover all cells of a step at once, see :mod:`~tidegauge.engine.ranked`. Of
        discovered cells those are ranked that are named at the step.

        Raises:
            InvalidParameter: It is no number of cells, or the gauge has none.
        """
        if top is not None:
            top = integer("top", top, low=1, high=MOST_CELLS, why="A number of cells.")
            if self.view.gauge.kind == "mean" or self.view.gauge.clip is not None:
                raise InvalidParameter(
                    "Expected counts or sums of fixed bounds, got means, or sums under a clip "
                    "that is found. Of these the largest may be those of the most noise. Leave it "
                    "out."
                )
            if not self.view.gauge.by or RANKED.intersection(dict(self.view.gauge.by)):
                raise InvalidParameter(
                    f"Expected cells that can be ranked, got those of {self.view.gauge.name}. "
                    "There are none, or a column is named rank or close. Leave it out."
                )
        return replace(self, view=replace(self.view, top=top))

    def total(self) -> PublishedView:
        """Return the sum of all cells as a view of the one cell ``*``, with its own noise_std.

        It is there whether or not the plan publishes totals. With ``other: drop`` it is the sum of
        the listed cells alone.

        Raises:
            InvalidParameter: Cells are discovered or chosen, so that some are not known.
        """
        if self.view.shown is not None or self.view.gauge.select is not None:
            raise InvalidParameter(
                f"Expected a gauge that publishes all cells, got {self.view.gauge.name}. The sum "
                "of those that are shown is none of all, and changes with which are shown. Count "
                "them in a gauge of its own, without by."
            )
        return replace(self, view=replace(self.view, total=True))

    def table(self, *, totals: bool | None = None) -> pl.DataFrame:
        """Return the releases with the columns of every release file.

        Args:
            totals: With the cell ``*`` after the others of each step; default: as the plan says.
        """
        if self.view.total or not (self.view.gauge.totals if totals is None else totals):
            return self.view.table(0, self.grains)
        import polars as pl
        import polars.selectors as cs

        both = [self.view.table(0, self.grains), self.total().table()]
        texts = [table.with_columns(cs.enum().cast(pl.String)) for table in both]
        return pl.concat(texts).sort("step", maintain_order=True)

    def last(self) -> pl.DataFrame:
        """Return the releases of the last published step, as :meth:`table` does."""
        last = int(self.steps[-1])
        return self.view.table(last - 1, self.grains[last - 1 : last])

    def ratio(self) -> float:
        """Return the worst noise over the least that any factorization mechanism could reach.

        It is judged like a plan: at the horizon for a sum that keeps growing, else in the limit;
        where it is read.

        Raises:
            InvalidParameter: Of means, and under a clip that is found, no lower bound is known.
        """
        self._refuse_without_bound()
        return ratio_to_bound(self.view.gauge.mechanism, self.view.decay, self.view.every)

    def ratio_if_planned(self) -> float:
        """Return what the ratio would be, had the gauge been designed for this view alone.

        Raises:
            InvalidParameter: Of means, and under a clip that is found, no lower bound is known.
        """
        self._refuse_without_bound()
        decay = self.view.decay
        from tidegauge.mechanisms.design import designed_for  # loads every strategy

        best = designed_for(self.view.gauge.mechanism, decay)
        return ratio_to_bound(best, decay, self.view.every)

    def _refuse_without_bound(self) -> None:
        gauge = self.view.gauge
        if gauge.kind == "mean" or gauge.clip is not None:
            raise InvalidParameter(
                f"Expected counts or sums of fixed bounds, got {gauge.name}. No lower bound is "
                "known for means and clips that are found. See the intervals in numbers."
            )
