"""PolynomialSum: windows of falling weight, each measured by binary trees of its own."""

from tidegauge.strategies.stepped.polynomial_sum import (
    PolynomialSum,
    build_polynomial_sum,
    polynomial_sum,
    polynomial_sum_of,
    stepped_windows,
)

__all__ = [
    "PolynomialSum",
    "build_polynomial_sum",
    "polynomial_sum",
    "polynomial_sum_of",
    "stepped_windows",
]
