"""Item systems of Cardoso and Rogers: what they show, what leaves no trace, what they refuse."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

from tidegauge import ZCDP, ApproxDP, PureDP
from tidegauge.errors import (
    InvalidInput,
    InvalidParameter,
    LiveState,
    StreamEnded,
    UnsupportedCombination,
)
from tidegauge.papers import cardoso_rogers
from tidegauge.papers.cardoso_rogers import (
    BaseMech,
    KnownBase,
    KnownGauss,
    KnownGumb,
    MetaAlgo,
    Shown,
    SparseGumb,
    SparseNoise,
    UnkBase,
    UnkGauss,
    UnkGumb,
    known_gauss,
    known_gumb,
    unk_gauss,
    unk_gumb,
)
from tidegauge.papers.cardoso_rogers.digits import digit_sum
from tidegauge.papers.cardoso_rogers.events import Items, counts_of
from tidegauge.strategies.asked import Asked
from tidegauge.strategies.blocks import Blocks
from tidegauge.strategies.decay import Running, Step, Window
from tidegauge.strategies.named import by_name, named_strategy
from tidegauge.strategies.strategy import Norm
from tidegauge.testing import seeded_items, seeded_system

LOUD = ApproxDP(1e5, 1e-3)  # nearly no noise
NAMES = ["ale", "bread", "cheese", "dates", "eggs"]


def unk_base(**options):
    return UnkBase(3, 100, options.pop("guarantee", LOUD), max_items=3, **options)


def stream(steps=60, seed=1):
    rng = np.random.default_rng(seed)
    return [
        {NAMES[i]: int(n) for i, n in enumerate(rng.poisson([9, 5, 2, 1, 0])) if n}
        for _ in range(steps)
    ]


def running(steps):
    total, out = dict.fromkeys(NAMES, 0), []
    for step in steps:
        for item, count in step.items():
            total[item] += count
        out.append(dict(total))
    return out


# ------------------------------------------------------------------ what is shown


def test_unk_base_shows_running_counts_above_the_threshold():
    system = unk_base()
    for shown, exact in zip(system.update_many(stream()), running(stream()), strict=True):
        above = [item for item in NAMES if exact[item] > system.threshold(1) + 0.5]
        assert set(above) <= set(shown.items)
        assert list(shown.items) == sorted(shown.items)
        for item, count in shown.as_dict().items():
            assert exact[item] == pytest.approx(count, abs=0.2)


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [("known_gauss", {"max_items": 3}), ("known_gumb", {"k": 5})],
)
def test_meta_algo_of_known_items_is_the_running_count(algorithm, options):
    system = MetaAlgo(algorithm, 3, 60, ZCDP(10**6 - 1), items=NAMES, **options)
    for shown, exact in zip(system.update_many(stream()), running(stream()), strict=True):
        assert tuple(NAMES) == shown.items
        np.testing.assert_allclose(list(exact.values()), shown.counts, atol=0.2)


def test_meta_algo_counts_an_item_as_nothing_in_blocks_that_do_not_show_it():
    system = MetaAlgo("known_gumb", 2, 7, ZCDP(10**6 - 1), items=NAMES, k=1)
    steps = [{"ale": 5, "eggs": 1}, {"ale": 5}, {"eggs": 8}, {}, {"ale": 1}, {"bread": 2}, {}]
    shown = [one.as_dict() for one in system.update_many(steps)]
    wanted = [
        {"ale": 5},
        {"ale": 10},
        {"ale": 10, "eggs": 8},
        {"ale": 10},
        {"ale": 11},
        {"ale": 10, "bread": 2},
    ]
    for found, right in zip(shown, wanted, strict=False):
        assert right == pytest.approx(found, abs=0.2)


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("unk_gauss", {"max_items": 2}),
        ("unk_gauss", {"max_items": 2, "kbar": 3}),
        ("unk_gumb", {"k": 2, "kbar": 4}),
    ],
)
def test_meta_algo_of_unknown_items_finds_the_frequent_ones(algorithm, options):
    system = MetaAlgo(algorithm, 4, 60, LOUD, **options)
    steps = [{item: 50 * count for item, count in step.items()} for step in stream()]
    shown = system.update_many(steps)
    assert {"ale", "bread"} <= set(shown[-1].items)
    assert all(list(one.items) == sorted(one.items) for one in shown)


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("relation", ["add_or_remove_one", "replace_one"])
def test_sparse_gumb_follows_the_top_until_its_switches_are_used_up(published, relation):
    noise = SparseNoise(Fraction(1, 10), Fraction(1, 10), 20)
    options = {"against_published": published, "neighboring_relation": relation}
    system = SparseGumb(NAMES, 1, 2, 50, switches=2, noise=noise, margin=4, **options)
    assert (1, 4, 2) == (system.k, system.margin, system.switches_left)
    tops, left = [], []
    for item, count in {"ale": 20, "bread": 100, "cheese": 500, "dates": 2500}.items():
        for _ in range(10):
            shown = system.update({item: count})
            left.append(system.switches_left)
        tops.append(shown.items)
        assert min(10 * count, 5000) == pytest.approx(shown.counts[0], abs=1)
    assert [("ale",), ("bread",), ("cheese",), ("cheese",)] == tops
    assert 0 == left[-1]


@pytest.mark.parametrize("published", [False, True])
def test_sparse_gumb_shows_all_items_if_there_are_no_more(published):
    system = SparseGumb(NAMES, 9, 2, 50, ZCDP(10**5), switches=3, against_published=published)
    shown = system.update_many(stream(50))
    assert tuple(NAMES) == shown[-1].items
    assert 0 == system.switches_left
    np.testing.assert_allclose(list(running(stream(50))[-1].values()), shown[-1].counts, atol=0.5)


def test_the_test_against_published_counts_needs_half_the_noise_where_counts_only_grow():
    laws = {}
    for published in (False, True):
        for relation in ("add_or_remove_one", "replace_one"):
            system = SparseGumb(
                NAMES,
                1,
                2,
                50,
                ZCDP(1),
                switches=2,
                against_published=published,
                neighboring_relation=relation,
            )
            tests = system._tests
            epsilon = system.noise.epsilon
            laws[published, relation[0]] = (
                tests._law.scale * epsilon,
                tests._threshold_law.scale * epsilon,
            )
    assert {
        (False, "a"): (4, 2),
        (False, "r"): (8, 4),
        (True, "a"): (2, 2),
        (True, "r"): (4, 2),
    } == laws


def test_the_default_margin_is_rarely_passed_by_noise():
    switched = 0
    for seed in range(20):
        system = seeded_items(seed, SparseGumb(NAMES, 2, 2, 200, ZCDP(0.1), switches=2))
        system.update_many([{}] * 200)
        switched += system.switches_left < 2
    assert switched <= 4


def test_one_shot_functions_show_what_their_noise_allows():
    histogram = {"ale": 900, "bread": 700, "cheese": 3, "dates": 0}
    assert ("ale", "bread", "cheese", "dates") == known_gauss(histogram, LOUD, max_items=2).items
    assert ("ale", "bread") == known_gumb(histogram, LOUD, k=2).items
    assert ("ale", "bread") == unk_gauss(histogram, ApproxDP(1, 1e-6), max_items=2).items
    assert ("ale", "bread") == unk_gauss(histogram, ApproxDP(1, 1e-6), max_items=2, kbar=2).items
    assert ("ale",) == unk_gumb(histogram, LOUD, k=1, kbar=3).items
    assert () == unk_gumb({}, ApproxDP(1, 1e-6), k=1, kbar=3).items
    assert () == unk_gauss({}, ApproxDP(1, 1e-6), max_items=1).items
    assert ("a",) == known_gumb({"a": 0}, LOUD, k=7).items


def test_base_mech_and_known_base_release_running_sums():
    system = seeded_system(1, BaseMech(3, 30, ZCDP(10**5)))
    np.testing.assert_allclose(np.arange(1, 31) / 2, system.update_many([0.5] * 30), atol=0.1)
    with KnownBase(NAMES, 3, 60, ZCDP(10**6 - 1), max_items=5) as known:
        released = known.update_many(stream())
    exact = np.array([list(one.values()) for one in running(stream())])
    np.testing.assert_allclose(exact, released, atol=0.2)
    assert tuple(NAMES) == known.items


# ------------------------------------------------------------------ noise and cost


def test_noise_std_is_that_of_the_digits_of_the_step():
    unknown = unk_base(guarantee=ApproxDP(1, 1e-6))
    meta = MetaAlgo(KnownGauss(10, max_items=1), 3, 100, items=NAMES)
    sparse = SparseGumb(NAMES, 2, 3, 100, noise=SparseNoise(5, 10, 1), switches=1)
    for step in (1, 26, 81):
        root = np.sqrt(digit_sum(3, step))
        assert 10 * root == pytest.approx(meta.noise_std(step), rel=1e-9)
        assert 10 * root == pytest.approx(sparse.noise_std(step), rel=1e-9)
        assert unknown.noise_std(1) * root == pytest.approx(unknown.noise_std(step))
    assert unknown.sensitivity == pytest.approx(np.sqrt(3 * 5))  # 100 has five digits


def test_measured_noise_is_what_it_is_said_to_be():
    names = [f"{i:05}" for i in range(20_000)]
    meta = seeded_items(1, MetaAlgo(KnownGauss(10, max_items=1), 3, 26, items=names))
    for step, shown in enumerate(meta.update_many([None] * 26), 1):
        assert meta.noise_std(step) == pytest.approx(shown.counts.std(), rel=0.03)


def test_costs_grow_with_levels_and_with_what_can_move():
    two, three = (MetaAlgo(KnownGumb(10, k=5), 2, end, items=NAMES) for end in (255, 256))
    assert (8, 9) == (20 * two.rho, 20 * three.rho)
    assert Fraction(1, 8) == KnownGumb(10, k=5, neighboring_relation="replace_one").rho
    assert 2 * KnownGauss(10, 3).rho == KnownGauss(10, 3, neighboring_relation="replace_one").rho
    one = UnkGauss(10, max_items=2, delta=1e-6, kbar=50)
    other = UnkGauss(10, max_items=2, delta=1e-6, kbar=50, neighboring_relation="replace_one")
    doubled = UnkGauss(10, max_items=4, delta=1e-6, kbar=50)
    assert (2 * one.rho, doubled.offset + 1) == (other.rho, other.offset)
    first = UnkGumb(10, k=2, kbar=5, delta=1e-6)
    second = UnkGumb(10, k=2, kbar=5, delta=1e-6, neighboring_relation="replace_one")
    assert (first.rho * Fraction(5, 2), first.offset + 1) == (second.rho, second.offset)
    system = MetaAlgo(first, 2, 255)
    assert (8 * first.rho, Fraction(8, 10**6)) == (system.rho, system.threshold_delta)
    assert float(system.cost.delta) == pytest.approx(16e-6)


def test_made_for_a_guarantee_a_system_costs_no_more():
    promise = ApproxDP(1, 1e-6)
    for name, options in {
        "unk_gauss": {"max_items": 3, "kbar": 10},
        "unk_gumb": {"k": 3, "kbar": 10},
    }.items():
        system = MetaAlgo(name, 4, 1000, promise, **options)
        assert promise == system.cost
        assert system.threshold_delta <= promise.delta / 2
        spent = MetaAlgo(system.algorithm, 4, 1000).cost
        assert spent.epsilon <= 1
        assert spent.delta <= promise.delta
    sparse = SparseGumb(NAMES, 2, 4, 1000, ZCDP(0.1), switches=5)
    assert 0.0999 < sparse.rho_of(4, 1000) <= Fraction(1, 10)
    replaced = SparseGumb(
        NAMES, 2, 4, 1000, ZCDP(0.1), switches=5, neighboring_relation="replace_one"
    )
    assert replaced.noise.selection == pytest.approx(2 * float(sparse.noise.selection))


def test_thresholds_of_three_kinds():
    constant, per_step, naive = (
        unk_base(guarantee=ApproxDP(1, 1e-6), threshold=way)
        for way in ("constant", "per_step", "naive")
    )
    assert constant.threshold(1) == pytest.approx(constant.threshold(80), abs=1e-5)
    assert per_step.threshold(1) < constant.threshold(1) < per_step.threshold(80)
    assert naive.threshold(1) == pytest.approx(per_step.threshold(80), rel=1e-6)
    heavy = unk_base(guarantee=ApproxDP(1, 1e-6), max_change=30)
    assert 30 * constant.threshold(1) == pytest.approx(heavy.threshold(1), rel=1e-6)
    replaced = unk_base(guarantee=ApproxDP(1, 1e-6), neighboring_relation="replace_one")
    assert np.sqrt(2) * constant.noise_std(1) == pytest.approx(replaced.noise_std(1), rel=1e-6)
    assert replaced.threshold(1) > np.sqrt(2) * (constant.threshold(1) - 1)


# ------------------------------------------------------------------ no trace, no order


def twice(first, second, made):
    """Releases of two streams under the same noise."""
    return [
        [(one.items, one.counts.tobytes()) for one in seeded_items(5, made()).update_many(steps)]
        for steps in (first, second)
    ]


def swapped():
    """Two streams that differ in what is seen first, and agree from the third step on."""
    rest = [{"a": 9, "b": 7}, {"c": 30}, {"b": 50}, {"a": 20}]
    return [{"a": 5}, {"b": 5}, *rest], [{"b": 5}, {"a": 5}, *rest]


@pytest.mark.parametrize(
    "made",
    [
        unk_base,
        lambda: MetaAlgo("unk_gauss", 3, 100, LOUD, max_items=3),
    ],
)
def test_nothing_depends_on_what_was_seen_first(made):
    one, other = twice(*swapped(), made)
    if made is unk_base:
        assert one[2:] == other[2:]
    order = [[("z", 5), ("a", 6), ("m", 50)], [("m", 50), ("z", 5), ("a", 6)]]
    one, other = twice(*([dict(pairs)] * 3 for pairs in order), made)
    if made is unk_base:
        assert one == other
    assert [sorted(items) for items, _ in one] == [list(items) for items, _ in one]


def test_a_table_that_shows_in_order_of_sight_is_caught(monkeypatch):
    def by_sight(self, mask, counts):
        places = np.flatnonzero(mask)
        return Shown(tuple(self.names[place] for place in places.tolist()), counts[places])

    monkeypatch.setattr(Items, "shown", by_sight)
    one, other = twice(*swapped(), unk_base)
    assert one[2:] != other[2:]


def test_hidden_items_leave_no_trace():
    quiet = [{"ale": 60, "bread": 40}] * 20
    rare = [{**step, f"rare {i}": 1} for i, step in enumerate(quiet)]
    one, other = twice(quiet, rare, lambda: unk_base(guarantee=ApproxDP(50, 1e-6)))
    assert one == other
    assert ("ale", "bread") == one[-1][0]


# ------------------------------------------------------------------ what a step may be


def test_a_step_is_a_set_a_mapping_a_pair_of_arrays_or_nothing():
    assert {} == counts_of(None, 2) == counts_of([], 2) == counts_of({"a": 0}, 2)
    assert {"a": 1, "b": 1} == counts_of({"b", "a", "c"}, 2) == counts_of(["c", "b", "a", "a"], 2)
    assert {"a": 3} == counts_of({"a": np.int64(3)}, 1)
    pair = (np.array(["b", "a", "b"]), np.array([1, 2, 3]))
    assert {"b": 4, "a": 2} == counts_of(pair, 1)
    alike = ["\u00e9", "e\u0301", "", "1", " 1", "1.0"]
    assert dict.fromkeys(alike, 1) == counts_of(alike, None)


def test_an_event_too_large_keeps_its_first_items_by_bytes():
    items = [chr(code) for code in (0x10FFFF, 0xFFFF, 0x7F, 0xE9, 0xD800)]
    by_bytes = sorted(items, key=lambda item: item.encode("utf-8", "surrogatepass"))
    assert by_bytes[:3] == list(counts_of(items, 3))


BAD = [
    "ale",
    b"ale",
    5,
    [1],
    [None],
    {"a": -1},
    {"a": 1.0},
    {"a": True},
    {"a": 1 << 31},
    {1: 1},
    (np.array(["a", "b"]), np.array([1])),
    (np.array(["a"]), np.array([1.5])),
    (np.array([["a"]]), np.array([[1]])),
    (np.array([1.0]), np.array([1])),
]


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_what_is_no_step_is_refused_before_anything_changes(bad):
    for system in (
        unk_base(),
        MetaAlgo("unk_gauss", 3, 100, LOUD, max_items=3),
        SparseGumb(NAMES, 2, 3, 100, ZCDP(1), switches=1),
        KnownBase(NAMES, 3, 100, ZCDP(1), max_items=2),
    ):
        with pytest.raises(InvalidInput) as error:
            system.update_many([["ale"], bad])
        assert 0 == system.step
        assert "ale" not in str(error.value)
        with pytest.raises(InvalidInput):
            system.update(bad)
        with pytest.raises(InvalidInput, match="sequence of steps"):
            system.update_many("ale")


def test_unknown_items_of_known_domains_are_refused_without_being_named():
    for system in (
        MetaAlgo("known_gumb", 3, 100, ZCDP(1), items=NAMES, k=2),
        SparseGumb(NAMES, 2, 3, 100, ZCDP(1), switches=1),
        KnownBase(NAMES, 3, 100, ZCDP(1), max_items=2),
    ):
        with pytest.raises(InvalidInput) as error:
            system.update(["secret"])
        assert "secret" not in str(error.value)
        system.update(["ale"])


def test_strange_items_are_items():
    items = [
        "",
        "a" * 10**6,
        "a,b",
        "a\nb",
        "a\0b",
        "\u00e9",
        "e\u0301",
        "1",
        "1.0",
        " 1",
        "\ud800",
    ]
    shown = unk_base().update({item: 500 for item in items})
    assert sorted(items) == list(shown.items)


# ------------------------------------------------------------------ refusals


def test_systems_end_and_stay_as_they_were():
    system = unk_base()
    system.update_many([None] * 99)
    with pytest.raises(StreamEnded, match="up to 100"):
        system.update_many([None, None])
    assert 99 == system.step
    system.update(None)
    with pytest.raises(StreamEnded):
        system.update(None)
    assert 100 == system.step == system.end
    known = KnownBase(NAMES, 3, 2, ZCDP(1), max_items=2)
    known.update_many([None, None])
    with pytest.raises(StreamEnded):
        known.update(None)


MADE = {
    "UnkBase": unk_base,
    "MetaAlgo": lambda: MetaAlgo("unk_gumb", 3, 100, LOUD, k=2, kbar=3),
    "SparseGumb": lambda: SparseGumb(NAMES, 2, 3, 100, ZCDP(1), switches=1),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_live_systems_are_not_copied_closed_or_interrupted(made):
    system = made()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LiveState, match="one live system"):
            copied(system)
    assert "step=0" in repr(system)
    assert "Cardoso and Rogers 2022" in system.source
    with made() as closed:
        pass
    with pytest.raises(LiveState, match="closed"):
        closed.update(None)
    broken = made()
    broken._turn._busy.acquire()
    with pytest.raises(LiveState, match="interrupted"):
        broken.update(None)


def test_impossible_parameters_are_refused():
    for refused in (
        lambda: UnkBase(1, 100, LOUD, max_items=1),
        lambda: UnkBase(2, 0, LOUD, max_items=1),
        lambda: UnkBase(2, 9, LOUD, max_items=0),
        lambda: UnkBase(2, 9, LOUD, max_items=1, threshold="none"),
        lambda: UnkBase(2, 9, LOUD, max_items=1, delta_share=1),
        lambda: UnkBase(2, 9, LOUD, max_items=1, delta_share=0),
        lambda: UnkBase(2, 9, LOUD, max_items=1, neighboring_relation="other"),
        lambda: UnkBase(2, 9, None, max_items=1),
        lambda: BaseMech(1, 9, ZCDP(1)),
        lambda: BaseMech(2, 0, ZCDP(1)),
        lambda: KnownBase(["a", "a"], 2, 9, ZCDP(1), max_items=1),
        lambda: KnownBase("ab", 2, 9, ZCDP(1), max_items=1),
        lambda: KnownBase([], 2, 9, ZCDP(1), max_items=1),
        lambda: MetaAlgo("top", 2, 9, ZCDP(1), items=NAMES),
        lambda: MetaAlgo("known_gumb", 2, 9, ZCDP(1), items=NAMES),
        lambda: MetaAlgo("known_gumb", 2, 9, ZCDP(1), k=2),
        lambda: MetaAlgo("unk_gumb", 2, 9, LOUD, k=3, kbar=2),
        lambda: MetaAlgo("unk_gumb", 2, 9, LOUD, k=1, kbar=2, delta=1e-9),
        lambda: MetaAlgo("unk_gumb", 2, 9, LOUD, k=1, kbar=2, std=1),
        lambda: MetaAlgo(KnownGumb(1, k=2), 2, 9, ZCDP(1), items=NAMES),
        lambda: SparseGumb(NAMES, 0, 2, 9, ZCDP(1), switches=1),
        lambda: SparseGumb(NAMES, 1, 2, 9, switches=1),
        lambda: SparseGumb(NAMES, 1, 2, 9, ZCDP(1), switches=-1),
        lambda: SparseGumb(NAMES, 1, 2, 9, ZCDP(1), switches=1, shares=(1, 2)),
        lambda: SparseGumb(NAMES, 1, 2, 9, ZCDP(1), switches=1, margin=0.5),
        lambda: SparseNoise(0, 1, 1),
        lambda: known_gauss({}, ZCDP(1), max_items=1),
        lambda: unk_base().noise_std(101),
        lambda: unk_base().threshold(0),
    ):
        with pytest.raises(InvalidParameter):
            refused()
    with pytest.raises(InvalidInput):
        known_gauss(["a"], ZCDP(1), max_items=1)
    for guarantee in (PureDP(1), ZCDP(1)):
        with pytest.raises(UnsupportedCombination):
            unk_gumb({"a": 5}, guarantee, k=1, kbar=2)


def test_base_mech_by_name_serves_running_sums_of_a_stream_with_an_end():
    by = by_name("BaseMech", {"base": 3})
    made = named_strategy(by, Asked((Running(), Step()), Norm.L1, 1, None, 80))
    assert Blocks.base(3, 80) == made
    finer = named_strategy(by, Asked((Running(),), Norm.L2, 1, None, 80))
    assert (made.levels, 20) == (finer.levels, finer.lattice_bits)
    for views, end in (((Window(3),), 80), ((Running(),), None)):
        with pytest.raises(UnsupportedCombination, match="Declare end"):
            named_strategy(by, Asked(views, Norm.L2, 1, None, end))
    with pytest.raises(InvalidParameter, match="base"):
        named_strategy(by_name("BaseMech", {"base": 2.5}), Asked((Running(),), Norm.L2, 1, None, 9))


def test_names_are_found_and_others_are_not():
    assert set(cardoso_rogers.__all__) == set(dir(cardoso_rogers))
    assert all(getattr(cardoso_rogers, name).__doc__ for name in cardoso_rogers.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = cardoso_rogers.nothing
