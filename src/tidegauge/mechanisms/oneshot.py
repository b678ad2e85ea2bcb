"""Noise for what is measured once: fresh counts, noisy orders, and a threshold that is passed once.

Each of these holds words of its own under a fresh key and numbers its draws, so that none is used
twice. Data meets noise in ``mechanisms/measure.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import final

import numpy as np

from tidegauge.errors import LiveState
from tidegauge.mechanisms.measure import measure_counts, measure_order
from tidegauge.mechanisms.turn import no_copies
from tidegauge.noise.gaussian import RoundedGaussian
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.noise.law import Law
from tidegauge.noise.randomness import Words, open_words
from tidegauge.strategies.strategy import Int64

__all__ = ["LATTICE_BITS", "AboveThreshold", "FreshCounts", "NoisyOrder", "Once"]

LATTICE_BITS = 20
"""Noisy counts lie on the lattice 2^-20."""


class Once(ABC):
    """Words, and the number of the next draw."""

    def __init__(self, purpose: str, scale: Fraction) -> None:
        self._words: Words = open_words("tidegauge one-shot 1", purpose, scale)
        self._next = 0

    def check_live(self) -> None:
        """Refuse what was closed, or belongs to another process, before anything is drawn.

        Raises:
            LiveState: It can draw nothing here.
        """
        self._words.check_live()

    @abstractmethod
    def close(self) -> None:
        """Erase what makes noise."""

    def _number(self) -> int:
        self._words.check_live()
        self._next += 1
        return self._next - 1

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = no_copies("mechanism")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._words!r})"


@final
class FreshCounts(Once):
    r"""Counts with rounded Gaussian noise that no other counts share.

    Guarantee:
        Each call: mu-GDP, mu = L2 sensitivity of the counts / std. Proof:
        ``docs/proofs/rounded_gaussian.md``.

    Args:
        std: Of the noise, in counts.

    Examples:
        >>> counts = FreshCounts(Fraction(1, 4))
        >>> noisy = counts.of(np.array([1000, 0])) / (1 << LATTICE_BITS)
        >>> bool((abs(noisy - [1000, 0]) < 5).all())
        True
    """

    def __init__(self, std: Fraction) -> None:
        self.law = RoundedGaussian(std * (1 << LATTICE_BITS))
        super().__init__("fresh counts", self.law.scale)

    def of(self, exact: Int64) -> Int64:
        """Return noisy counts on the lattice, shape (n,)."""
        return measure_counts(self.law, self._words, exact, LATTICE_BITS, self._number())

    def close(self) -> None:
        """Erase the key."""
        self._words.close()


@final
class NoisyOrder(Once):
    r"""The places of counts in the order of Gumbel noise, exactly.

    Guarantee:
        Each of the first places is a pick of the exponential mechanism: (1 / scale)-bounded-range
        if counts move by 0 or 1 in one direction. Proof: ``docs/proofs/selection.md``.

    Args:
        scale: Of the Gumbel noise, in counts.

    Examples:
        >>> order = NoisyOrder(Fraction(1, 4))
        >>> order.of(np.array([0, 1000, 400]) << LATTICE_BITS).tolist()
        [1, 2, 0]
    """

    def __init__(self, scale: Fraction) -> None:
        self._scale = scale * (1 << LATTICE_BITS)
        super().__init__("gumbel order", self._scale)

    def of(self, scores: Int64) -> Int64:
        """Return places, the first first, of scores in units of the lattice."""
        return measure_order(self._words, scores, self._scale, self._number())

    def close(self) -> None:
        """Erase the key."""
        self._words.close()


@final
class AboveThreshold(Once):
    r"""Tells when an integer statistic first passes a margin, by discrete Laplace noise.

    Guarantee:
        From one call of :meth:`restart` to the first answer True, epsilon-DP, however long it
        takes: threshold noise of scale 2 d / epsilon, noise at each test of 4 d / epsilon, d the
        statistic's sensitivity; 2 d / epsilon for ``monotone`` ones, which all move the same way.
        Proof: ``docs/proofs/cardoso_rogers.md``.

    Args:
        epsilon: Of one run.
        sensitivity: How far one event moves the statistic, an integer.
        monotone: Whether one event moves it at all steps in one direction, if at all.
        threshold: The noisy margin of a run that another opening began; None: none is on. It is as
            private as the data: nobody may draw it twice.
    """

    def __init__(
        self,
        epsilon: Fraction,
        sensitivity: int,
        *,
        monotone: bool,
        threshold: int | None = None,
    ) -> None:
        self._threshold_law: Law = DiscreteLaplace(2 * sensitivity / epsilon)
        self._law: Law = DiscreteLaplace((2 if monotone else 4) * sensitivity / epsilon)
        super().__init__("tests", self._law.scale)
        # a source of words serves one law, so that the threshold has its own
        self._threshold_words = open_words("tidegauge one-shot 1", "threshold", epsilon)
        self._margin = threshold

    @property
    def threshold(self) -> int | None:
        """Private: the noisy margin of the run that is on; None: none is."""
        return self._margin

    def restart(self, margin: int) -> None:
        """Draw a fresh threshold around a margin; paid for anew."""
        exact = np.array([margin], np.int64)
        noisy = measure_counts(self._threshold_law, self._threshold_words, exact, 0, self._number())
        self._margin = int(noisy[0])

    def passed(self, statistic: int) -> bool:
        """Whether the noisy statistic reaches the noisy margin; after True: ``restart`` first.

        Raises:
            LiveState: The last answer was True: nothing is paid for after it.
        """
        return self.first(np.array([statistic], np.int64)) is not None

    def first(self, statistics: Int64) -> int | None:
        """Return the place of the first of some statistics that passes; None: none does.

        Noise that was drawn for those behind it is used for nothing.

        Raises:
            LiveState: As in :meth:`passed`.
        """
        if self._margin is None:
            raise LiveState(
                "Expected a threshold that was drawn, got none. A test after a pass would be "
                "another run, unpaid. Call restart first, and charge it."
            )
        noisy = measure_counts(self._law, self._words, statistics, 0, self._number())
        passing = np.flatnonzero(noisy >= self._margin)
        if not len(passing):
            return None
        self._margin = None
        return int(passing[0])

    def close(self) -> None:
        """Erase both keys."""
        self._words.close()
        self._threshold_words.close()
