"""The one door to randomness: AES as published, nothing shared, nothing copied, nothing kept."""

import copy
import os
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tidegauge.errors import InvalidParameter, LiveState
from tidegauge.noise import randomness
from tidegauge.noise.randomness import AesWords, derive, fresh_key, open_words, stored_words
from tidegauge.testing import SeededWords


def words_of(source, inputs):
    inputs = np.array(inputs, dtype=np.uint64)
    outputs = np.empty((len(inputs) + 1, 2), dtype=np.uint64)
    source.fill(inputs, outputs)
    return outputs[:-1].tolist()


def test_aes_256_gives_the_words_of_the_published_vector():
    # FIPS 197, appendix C.3: the cipher that words come from, on bytes 00 11 22 .. ff
    source = AesWords(bytes(32))
    source._ciphers[0x7766554433221100 >> 11, 0xFFEEDDCCBBAA9988 >> 38] = Cipher(
        algorithms.AES(bytes(range(32))), modes.ECB()
    ).encryptor()
    (word,) = words_of(source, [[0x7766554433221100, 0xFFEEDDCCBBAA9988]])
    assert np.array(word, dtype="<u8").tobytes().hex() == "8ea2b7ca516745bfeafc49904b496089"


def test_words_follow_hkdf_and_aes_of_their_number():
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

    key = bytes(range(32))
    cell, coordinate, attempt, block = 5000, 3 << 20, 2, 7
    info = b"range" + (cell >> 11).to_bytes(8, "big") + (coordinate >> 18).to_bytes(8, "big")
    ranged = HKDFExpand(hashes.SHA256(), 32, info).derive(key)
    number = cell | (coordinate << 20 | attempt << 4 | block) << 64
    encryptor = Cipher(algorithms.AES(ranged), modes.ECB()).encryptor()
    expected = np.frombuffer(encryptor.update(number.to_bytes(16, "little")), dtype="<u8")
    (word,) = words_of(AesWords(key), [[cell, coordinate << 20 | attempt << 4 | block]])
    assert expected.tolist() == word


def test_word_depends_on_its_number_alone_not_on_the_block_it_is_drawn_in():
    rng = np.random.default_rng(1)
    inputs = np.stack(
        [rng.integers(0, 1 << 13, 5000), rng.integers(0, 1 << 41, 5000)], axis=1
    ).astype(np.uint64)
    whole = words_of(SeededWords(1), inputs)
    order = rng.permutation(5000)
    source = SeededWords(1)
    shuffled = words_of(source, inputs[order])
    assert [whole[i] for i in order] == shuffled
    assert whole[70:90] == words_of(source, inputs[70:90])


def test_no_two_numbers_share_a_word_across_key_ranges():
    inputs = [[cell, step << 26] for cell in (0, 2047, 2048, 9999) for step in range(0, 9000, 30)]
    words = words_of(SeededWords(1), inputs)
    assert len({tuple(word) for word in words}) == len(inputs)


def test_each_key_serves_fewer_than_2_32_words():
    pairs = 1 << (randomness._CELL_BITS + randomness._COORDINATE_BITS)
    assert 4 * pairs < 1 << 32  # at most 2 blocks an attempt, and few attempts


CONTEXTS = [
    ("a",),
    ("a", "b"),
    ("ab",),
    ("b", "a"),
    (b"a",),
    (1,),
    ("1",),
    (Fraction(1, 2),),
    (Fraction(1),),
    ("1/2",),
    (-1,),
    ("a", ""),
    ("", "a"),
]


def test_no_two_contexts_derive_one_key():
    keys = {derive(bytes(32), *context) for context in CONTEXTS}
    assert len(CONTEXTS) == len(keys)


def test_two_openings_share_no_word_even_for_one_context():
    inputs = [[cell, 0] for cell in range(500)]
    first, second = (words_of(open_words("same"), inputs) for _ in range(2))
    assert not {tuple(word) for word in first} & {tuple(word) for word in second}


@pytest.mark.parametrize("part", [True, 1.0, None, ["a"]])
def test_context_without_an_exact_form_is_refused(part):
    with pytest.raises(InvalidParameter, match="Expected a context"):
        open_words("gauge", part)


def test_empty_context_is_refused():
    with pytest.raises(InvalidParameter, match="at least one part"):
        open_words()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("source", [open_words("a"), SeededWords(1)])
def test_live_words_cannot_be_copied_or_pickled(copied, source):
    with pytest.raises(LiveState, match="Open a gauge of its own"):
        copied(source)


@pytest.mark.parametrize("source", [open_words("a"), SeededWords(1)])
def test_closed_words_give_nothing_more(source):
    source.check_live()
    source.close()
    source.close()
    with pytest.raises(LiveState, match="Expected open words"):
        words_of(source, [[0, 0]])
    with pytest.raises(LiveState, match="Expected open words"):
        source.check_live()


def test_closing_erases_the_key_and_what_was_drawn():
    source = AesWords(bytes(range(32)))
    inputs, outputs, _ = source.scratch(4)
    inputs[:] = 0
    source.fill(inputs, outputs)
    source.close()
    assert bytes(32) == bytes(source._key)
    assert not source._ciphers
    assert not outputs.any()


def test_fork_cannot_draw_the_noise_of_its_parent():
    source = open_words("a")
    words_of(source, [[0, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking a process with threads
        child = os.fork()
    if child == 0:
        try:
            words_of(source, [[0, 0]])
        except LiveState:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    words_of(source, [[0, 0]])


def test_fork_is_noticed_even_under_the_same_process_number(monkeypatch):
    source = open_words("a")
    monkeypatch.setattr(randomness, "_forks", randomness._forks)  # restored after the test
    randomness._note_fork()
    with pytest.raises(LiveState, match="fork"):
        words_of(source, [[0, 0]])


def test_reprs_show_no_key_and_name_the_double_insecure():
    key = bytes(range(65, 97))
    assert repr(AesWords(key)) == "AesWords(open)"
    assert "INSECURE" in repr(SeededWords(1))
    assert "INSECURE" in SeededWords.__doc__


def test_keys_of_many_ranges_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(randomness, "_MOST_KEYS", 3)
    source = SeededWords(1)
    inputs = [[cell << 11, 0] for cell in range(10)]
    assert words_of(source, inputs) == words_of(source, inputs)
    assert len(source._words._ciphers) <= 3


def test_a_stored_key_gives_the_same_words_to_the_same_context_and_no_other():
    key, inputs = bytes(range(32)), [[0, 0], [1, 1 << 20], [1 << 40, 5 << 20]]
    words = words_of(stored_words(key, "visits", Fraction(5, 2), 30), inputs)
    assert words == words_of(stored_words(key, "visits", Fraction(5, 2), 30), inputs)
    others = (
        stored_words(key, "visit", Fraction(5, 2), 30),
        stored_words(key, "visits", Fraction(5, 2), 31),
        stored_words(key, "visits", Fraction(5), 30),
        stored_words(key, "visits"),
        stored_words(bytes(32), "visits", Fraction(5, 2), 30),
        AesWords(key),
    )
    for other in others:
        assert all(a != b for a, b in zip(words, words_of(other, inputs), strict=True))


@pytest.mark.parametrize("key", [b"", b"short", bytes(33), bytearray(32), "k" * 32, None])
def test_a_key_that_could_be_guessed_is_refused_and_not_told(key):
    with pytest.raises(InvalidParameter, match="32 bytes, got something else"):
        stored_words(key, "visits")
    with pytest.raises(InvalidParameter, match="context"):
        stored_words(bytes(32))


def test_fresh_keys_differ():
    assert 50 == len({fresh_key() for _ in range(50)})
