"""Noise of items: a function of the item, whenever it is added, and reused from step to step."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

from tidegauge.errors import LiveState
from tidegauge.mechanisms.item_noise import ItemNoise, digit_blocks
from tidegauge.mechanisms.oneshot import LATTICE_BITS, AboveThreshold, FreshCounts, NoisyOrder
from tidegauge.noise.item_words import ItemWords
from tidegauge.noise.randomness import AesWords
from tidegauge.papers.cardoso_rogers.digits import digit_sum

KEYS = bytes(range(32)), bytes(range(32, 64))


def seeded(base=3, end=80, std=Fraction(10)):
    noise = ItemNoise(base, end, std)
    noise._start(AesWords(KEYS[0]), KEYS[1])
    return noise


def values(noise, size):
    return noise.of(np.zeros(size, np.int64))


@pytest.mark.parametrize("base", [2, 3, 10])
def test_an_item_has_the_same_noise_whenever_it_is_added(base):
    early, late = seeded(base), seeded(base)
    early.add([b"a", b"b", b"c"])
    order = []
    for step in range(1, 81):
        early.advance()
        late.advance()
        if step in (5, 27, 54):
            order.append({5: b"b", 27: b"c", 54: b"a"}[step])
            late.add(order[-1:])
        wanted = values(early, 3)[[b"abc".index(item) for item in order]]
        assert wanted.tolist() == values(late, len(order)).tolist()


def test_noise_is_the_sum_over_the_blocks_of_the_digits_and_each_block_is_drawn_once():
    noise, words = seeded(), ItemWords(AesWords(KEYS[0]), KEYS[1])
    noise.add([b"x", b"y"])
    table = words.of(words.digests([b"x", b"y"]))
    blocks = {}
    for step in range(1, 81):
        noise.advance()
        parts = digit_blocks(noise.levels, step)
        assert digit_sum(3, step) == len(parts)
        for level, end in parts:
            coordinate = np.array([64 * (end - 1) + level])
            blocks.setdefault((level, end), noise.law.draw(table, coordinate, 2)[0])
        assert sum(blocks[part] for part in parts).tolist() == values(noise, 2).tolist()


def test_a_table_that_grows_keeps_what_it_has():
    whole, grown = seeded(), seeded()
    items = [b"%d" % i for i in range(500)]
    whole.add(items)
    for step in range(50):
        whole.advance()
        grown.advance()
        grown.add(items[10 * step : 10 * step + 10])
    assert values(whole, 500).tolist() == values(grown, 500).tolist()
    assert "step=50" in repr(grown)


def test_noise_that_returns_is_the_old_one():
    noise, other = seeded(), seeded()
    other.add([b"a"])
    for one in (noise, other):
        for _ in range(7):
            one.advance()
    noise.add([b"a"])
    noise.replace([b"b"])
    for one in (noise, other):
        one.advance()
    noise.replace([b"a"])
    assert values(other, 1).tolist() == values(noise, 1).tolist()


def test_words_of_items_depend_on_nothing_but_item_and_number():
    words = ItemWords(AesWords(KEYS[0]), KEYS[1])
    items = [b"", b"a", b"a\0", b"\xc3\xa9", b"e\xcc\x81", b"1", b"1.0", b" 1", b"x" * 10**6]
    inputs = np.array([[i, 5 << 20 | j] for i in range(len(items)) for j in range(3)], np.uint64)
    outputs = np.empty((len(inputs) + 1, 2), np.uint64)
    words.of(words.digests(items)).fill(inputs, outputs)
    assert len(inputs) == len({tuple(row) for row in outputs[:-1].tolist()})
    backwards = np.empty_like(outputs)
    inputs[:, 0] = len(items) - 1 - inputs[:, 0]
    words.of(words.digests(items[::-1])).fill(inputs, backwards)
    assert outputs[:-1].tolist() == backwards[:-1].tolist()
    far = np.array([[0, 5 << 20], [0, (1 << 18) << 20 | 5 << 20]], np.uint64)
    words.of(words.digests(items)).fill(far, outputs[:3])
    assert outputs[0].tolist() != outputs[1].tolist()


def test_a_word_is_aes_of_the_digest_and_the_number():
    import hashlib

    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

    words = ItemWords(AesWords(KEYS[0]), KEYS[1])
    number = 3 << 38 | 77 << 20 | 2 << 4 | 1
    outputs = np.empty((2, 2), np.uint64)
    words.of(words.digests([b"tea"])).fill(np.array([[0, number]], np.uint64), outputs)
    key = HKDFExpand(
        hashes.SHA256(), 32, b"range" + (1 << 60).to_bytes(8, "big") + (3).to_bytes(8, "big")
    ).derive(KEYS[0])
    digest = hashlib.blake2b(
        b"tea", digest_size=16, key=KEYS[1], person=b"tidegauge item 1"
    ).digest()
    low, high = (int.from_bytes(digest[i : i + 8], "little") for i in (0, 8))
    block = low.to_bytes(8, "little") + (high ^ number).to_bytes(8, "little")
    expected = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)
    assert expected == outputs[:1].tobytes()


@pytest.mark.parametrize(
    "made",
    [
        lambda: ItemNoise(2, 10, Fraction(1)),
        lambda: FreshCounts(Fraction(1)),
        lambda: NoisyOrder(Fraction(1)),
        lambda: AboveThreshold(Fraction(1), 1, monotone=False),
    ],
)
def test_live_noise_cannot_be_copied_and_closed_noise_gives_nothing(made):
    noise = made()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LiveState, match="at its own cost"):
            copied(noise)
    noise.close()
    with pytest.raises(LiveState, match="closed"):
        noise.check_live()


def test_two_draws_of_one_mechanism_differ():
    counts = FreshCounts(Fraction(10))
    zeros = np.zeros(50, np.int64)
    assert counts.of(zeros).tolist() != counts.of(zeros).tolist()
    assert 10 == pytest.approx(counts.law.std / (1 << LATTICE_BITS))


def test_a_test_after_a_pass_is_refused_until_it_is_paid_for():
    tests = AboveThreshold(Fraction(10), 1, monotone=False)
    with pytest.raises(LiveState, match="unpaid"):
        tests.passed(10**6)
    tests.restart(0)
    assert not tests.passed(-(10**6))
    assert tests.passed(10**6)
    with pytest.raises(LiveState, match="unpaid"):
        tests.passed(10**6)
    tests.restart(0)
    assert tests.passed(10**6)
