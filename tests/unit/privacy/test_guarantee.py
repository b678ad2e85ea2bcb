import math
import re
from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist

import pytest

from tidegauge.errors import InvalidParameter
from tidegauge.privacy.conversion import mu_from_epsilon_delta
from tidegauge.privacy.guarantee import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    PureDP,
    guarantee_of,
    rounded_up,
)

NOT_A_LOSS = [-1, 0, float("nan"), float("inf"), float("-inf"), "1", True, None, 1j, 10**6, [1]]
NOT_A_DELTA = [0, 1, 2, -1e-9, float("nan"), float("inf"), "1e-9", True, None]


@pytest.mark.parametrize("kind", [PureDP, ZCDP, GaussianDP])
@pytest.mark.parametrize("value", NOT_A_LOSS)
def test_a_loss_that_is_not_a_positive_number_is_refused_with_a_remedy(kind, value):
    with pytest.raises(InvalidParameter, match=r"^Expected .*, got .*\. .*Choose a number"):
        kind(value)


@pytest.mark.parametrize("value", NOT_A_LOSS)
def test_an_epsilon_beside_a_delta_is_judged_alike(value):
    with pytest.raises(InvalidParameter, match="epsilon"):
        ApproxDP(value, 1e-9)


@pytest.mark.parametrize("value", NOT_A_DELTA)
def test_a_delta_outside_zero_and_one_is_refused_with_a_remedy(value):
    with pytest.raises(InvalidParameter, match=r"^Expected delta .*, got .*far below 1 over"):
        ApproxDP(1, value)


def test_parameters_are_the_decimals_that_were_written():
    assert Fraction(1, 10) == PureDP(0.1).epsilon
    assert Fraction(3, 10) == ZCDP(Decimal("0.3")).rho
    assert Fraction(1, 3) == GaussianDP(Fraction(1, 3)).mu
    assert Fraction(1, 10**9) == ApproxDP(1, 1e-9).delta
    assert PureDP(1) == PureDP(1.0) == PureDP(Fraction(1))


def test_a_guarantee_cannot_be_changed():
    with pytest.raises(AttributeError):
        PureDP(1).epsilon = Fraction(2)


def test_the_three_ways_to_ask_give_the_same_guarantee():
    assert PureDP(1) == guarantee_of(epsilon=1)
    assert ApproxDP(1, 1e-9) == guarantee_of(epsilon=1, delta=1e-9)
    assert GaussianDP(1) == guarantee_of(guarantee=GaussianDP(1))


@pytest.mark.parametrize(
    "asked",
    [{}, {"delta": 1e-9}, {"epsilon": 1, "guarantee": PureDP(1)}, {"guarantee": 1},
     {"delta": 1e-9, "guarantee": PureDP(1)}, {"guarantee": PureDP}],
)  # fmt: skip
def test_no_guarantee_and_two_guarantees_are_refused(asked):
    with pytest.raises(InvalidParameter, match="Expected"):
        guarantee_of(**asked)


QUESTION = "whether one event was in the data"


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 0.6931472, 1, 3, 20])
def test_the_factors_in_words_are_never_below_the_truth(epsilon):
    odds = PureDP(epsilon).in_words(QUESTION).split("factor of ")[1].rstrip(".")
    times = ApproxDP(epsilon, 1e-9).in_words(QUESTION).split("more than ")[1].split(" times")[0]
    assert odds == times
    assert math.exp(epsilon) <= float(odds) <= math.exp(epsilon) * 1.01


def is_true_of_gaussian(words, mu):
    """Judge a sentence of (epsilon, delta) by the exact laws N(0, 1) and N(mu, 1)."""
    number = r"([0-9.e+-]+[0-9])"
    normal = NormalDist()
    if likely := re.search(rf"more than {number} times as likely, plus {number}", words):
        factor, plus = map(float, likely.groups())
        a = math.log(factor) / mu - mu / 2  # the result that gains most: all draws beyond a + mu
        return normal.cdf(-a) <= factor * normal.cdf(-a - mu) + plus
    factor, probability = map(
        float,
        re.search(
            rf"at most a factor of {number}, except with probability at most {number}", words
        ).groups(),
    )
    return normal.cdf(mu / 2 - math.log(factor) / mu) <= probability


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-9), (0.1, 1e-6), (3, 1e-5), (0.5, 0.01)])
def test_the_sentence_on_likelihoods_is_true_of_all_the_gaussian_noise_it_allows(epsilon, delta):
    mu = float(mu_from_epsilon_delta(epsilon, delta))
    words = ApproxDP(epsilon, delta).in_words(QUESTION)
    assert is_true_of_gaussian(words, mu)
    assert not is_true_of_gaussian(words, 1.05 * mu)  # and says no more than that


def test_delta_as_the_probability_that_odds_change_further_is_found_false():
    false = (
        f"change the odds on {QUESTION} by at most a factor of 2.72, except with probability at "
    )
    false += "most 1e-9."
    assert not is_true_of_gaussian(false, float(mu_from_epsilon_delta(1, 1e-9)))


@pytest.mark.parametrize("mu", [0.01, 0.5, 1, 3])
def test_the_test_in_words_is_the_exact_trade_off(mu):
    found = float(GaussianDP(mu).in_words(QUESTION).split("at most ")[1].split(" %")[0])
    exact = 100 * (1 - NormalDist().cdf(NormalDist().inv_cdf(0.95) - mu))
    assert exact <= found + 1e-9
    assert found <= exact * 1.01


def test_words_speak_of_the_question_that_they_are_given():
    for guarantee in (PureDP(1), ZCDP(1), GaussianDP(1), ApproxDP(1, 1e-9)):
        assert "whether the cat is at home" in guarantee.in_words("whether the cat is at home")


@pytest.mark.parametrize("value", [Fraction(1, 3), 2 / 3, 1e-12, 123456.7, 9.999999, 0.9999, 1e300])
def test_numbers_for_reading_are_rounded_up(value):
    assert value <= Fraction(rounded_up(value)) <= Fraction(value) * Fraction(101, 100)


def test_short_numbers_are_shown_as_they_are_and_huge_odds_as_powers():
    assert rounded_up(Fraction(123456, 10**6)) == "0.123456"
    assert rounded_up(1000) == "1000"
    assert "a factor of e^50." in PureDP(50).in_words(QUESTION)
