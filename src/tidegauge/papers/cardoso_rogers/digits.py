"""Digits: how many blocks the running sum of a step takes, and how many levels a stream has."""

from __future__ import annotations

from functools import lru_cache

from tidegauge.checks import integer
from tidegauge.strategies.blocks.levels import power_levels
from tidegauge.strategies.strategy import MOST_STEPS

__all__ = ["best_base", "digit_sum", "level_count", "most_blocks", "steps_by_digit_sum"]


def level_count(base: int, end: int) -> int:
    """Return the number of digits of the last step: in so many blocks can an event lie.

    Examples:
        >>> level_count(2, 255), level_count(2, 256), level_count(10, 1000)
        (8, 9, 4)
    """
    return len(power_levels(base, end))


def digit_sum(base: int, step: int) -> int:
    """Return how many blocks the running sum at a step consists of.

    Examples:
        >>> digit_sum(2, 255), digit_sum(3, 255)
        (8, 3)
    """
    total = 0
    while step:
        step, digit = divmod(step, base)
        total += digit
    return total


@lru_cache(maxsize=256)
def steps_by_digit_sum(base: int, end: int) -> tuple[int, ...]:
    """Return, for n = 0, 1, .., how many of the steps 1 to end have the digit sum n.

    Examples:
        >>> steps_by_digit_sum(2, 7)
        (0, 3, 3, 1)
    """
    digits = []
    rest = end
    while rest:
        rest, digit = divmod(rest, base)
        digits.append(digit)
    free = [[1]]  # numbers of so many digits, by digit sum
    for _ in digits:
        longer = [0] * (len(free[-1]) + base - 1)
        for n, count in enumerate(free[-1]):
            for digit in range(base):
                longer[n + digit] += count
        free.append(longer)
    found = [0] * len(free[-1])
    fixed = 0
    for place in range(len(digits) - 1, -1, -1):
        for digit in range(digits[place]):
            for n, count in enumerate(free[place]):
                found[fixed + digit + n] += count
        fixed += digits[place]
    found[fixed] += 1
    found[0] -= 1  # step 0
    while not found[-1]:
        found.pop()
    return tuple(found)


def most_blocks(base: int, end: int) -> int:
    """Return the largest digit sum of a step up to the end.

    Examples:
        >>> most_blocks(2, 1000), most_blocks(2, 255)
        (9, 8)
    """
    best, power, rest, above = 0, 1, end, 0
    while rest:  # lower one digit, and all below it are as large as can be
        rest, digit = divmod(rest, base)
        above = digit_sum(base, rest)
        if digit:
            best = max(best, above + digit - 1 + (base - 1) * (level_count(base, power) - 1))
        power *= base
    return max(best, digit_sum(base, end))


def best_base(end: int) -> int:
    """Return the base with the least worst noise at equal privacy: argmin of (r - 1) L_r^2.

    L_r is the number of base-r digits of the last step; the first base where several are best.
    Nearly always between 3 and 10, with about 15 % less noise than base 2.

    Args:
        end: The last step.

    Raises:
        InvalidParameter: No integer from 1 to 2^38.

    Examples:
        >>> best_base(1000), best_base(10**6)
        (4, 4)

    References:
        Cardoso and Rogers 2022, section 3.
    """
    last = integer("end", end, low=1, high=MOST_STEPS, why="It is the last step. Give its number.")
    largest = last.bit_length() ** 2 + 1  # beyond it r - 1 alone exceeds what base 2 has
    return min(range(2, largest + 1), key=lambda r: (r - 1) * level_count(r, last) ** 2)
