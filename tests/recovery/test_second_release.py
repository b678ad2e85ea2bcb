"""T7: old copies, lost stores, second releases: refused, or charged again in full."""

import hashlib
import json
import shutil
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
import stand

from tidegauge.engine import measuring
from tidegauge.engine import run as running
from tidegauge.engine.mark import MarkFile
from tidegauge.engine.public import PublicFolder
from tidegauge.engine.publisher import Publisher
from tidegauge.errors import InvalidInput, StoreBehind, StoreMismatch
from tidegauge.mechanisms.meter import Meter
from tidegauge.mechanisms.selector import Selector
from tidegauge.planning.promise import odds, promise
from tidegauge.strategies.blocks import OpenBlocks
from tidegauge.testing import seeded_meter

PLAN = stand.plan_of(end=30)
ROWS = stand.rows()
UNTIL = stand.START + 10 * stand.HOUR


def until(hours):
    from datetime import UTC, datetime, timedelta

    return datetime(2013, 1, 1, tzinfo=UTC) + timedelta(hours=hours)


@pytest.fixture
def place(memory_path):
    """A store of 20 steps whose backup, taken at step 10, was brought back."""
    place = stand.Place(memory_path)
    place.run(PLAN, ROWS, until=until(10))
    backup = memory_path / "backup"
    shutil.copytree(memory_path / "private", backup)
    place.run(PLAN, ROWS, until=until(20))
    shutil.rmtree(memory_path / "private")
    shutil.copytree(backup, memory_path / "private")
    return place


def measured(place, gauge="flights"):
    blocks = list(PublicFolder(place.public).blocks(gauge))
    return np.concatenate([block.measured for block in blocks])


def test_a_restored_store_is_refused_and_nothing_changes(place):
    before = place.files()
    with pytest.raises(StoreBehind, match="Expected 20 steps"):
        place.run(PLAN, ROWS)
    assert before == place.files()


def test_a_restored_store_is_refused_by_its_mark_alone(place):
    shutil.rmtree(place.public)
    with pytest.raises(StoreBehind, match="accept-second-release"):
        place.run(PLAN, ROWS)


def test_a_restored_store_is_refused_by_the_public_folder_if_the_mark_was_restored_too(place):
    mark = MarkFile(place.mark, place.store)
    (content,) = mark.read("")
    place.mark.unlink()
    mark.write(replace(content, step=10))
    with pytest.raises(StoreBehind, match="which is step 11 and more"):
        place.run(PLAN, ROWS)


def test_measurements_without_a_mark_are_refused(place):
    place.mark.unlink()
    shutil.rmtree(place.public)
    with pytest.raises(StoreBehind, match="got none, though 10 steps are measured"):
        place.run(PLAN, ROWS)


def test_a_lost_store_is_refused(place):
    shutil.rmtree(place.root / "private")
    with pytest.raises(StoreBehind, match=f"as its mark {place.mark} says, got none"):
        place.run(PLAN, ROWS)
    assert not place.store.exists()  # nothing new is left where it lay


def test_a_damaged_mark_is_refused(place):
    text = place.mark.read_text()
    place.mark.write_text(text.replace('"step": 20', '"step": 10'))
    with pytest.raises(StoreBehind, match="Expected a mark") as caught:
        place.run(PLAN, ROWS)
    assert "remove" not in str(caught.value)  # a step-0 copy would then begin anew, unseen
    settings = replace(place.settings, mark="marks/new.mark")
    with pytest.raises(StoreBehind):
        running.run(PLAN, stand.Rows(ROWS), settings)
    rows = stand.Rows(ROWS)
    assert 2 == running.run(PLAN, rows, settings, accept_second_release=True).releases


def test_a_second_release_is_charged_in_full_and_draws_everything_anew(place):
    first, before = measured(place), place.numbers()
    outcome = place.run(PLAN, ROWS, accept_second_release=True, until=until(20))
    second = measured(place)
    assert 2 == outcome.releases
    ledger = json.loads(place.files()["ledger.json"])
    assert 2 * [PLAN.charged().events()["events"][0]] == ledger["events"]["events"]
    assert [1, 11] == [charge["from_step"] for charge in ledger["charges"]]
    assert (first[:10] == second[:10]).all()  # these were never measured again
    assert (first[10:20] != second[10:20]).all()  # and these, for the same data, with other noise
    aside = {f"superseded/1/{name}": data for name, data in before.items()}
    assert aside.items() <= place.files().items()  # what was published is still there
    assert "further release" in place.files()["PRIVACY.md"].decode()
    assert "ERRATUM, 2 releases" in place.files()["PRIVACY.md"].decode().splitlines()[0]


def test_whatever_a_reader_is_told_after_a_second_release_is_of_both(place):
    folder = PublicFolder(place.public)
    before = folder.releases, folder.promise(), folder.statement()
    assert (1, True) == (before[0], before[1] in before[2])
    place.run(PLAN, ROWS, accept_second_release=True, until=until(20))
    assert (2, promise(PLAN, 2)) == (folder.releases, folder.promise())
    assert folder.promise() in folder.statement()
    assert before[1] not in folder.statement()
    privacy, ledger = (json.loads(place.files()[f"{name}.json"]) for name in ("privacy", "ledger"))
    assert ledger["epsilon"] == privacy["guarantee"]["epsilon"]
    assert privacy["odds"] == odds(PLAN, 2) != odds(PLAN)
    (place.public / "ledger.json").unlink()
    with pytest.raises(InvalidInput, match="Fetch the folder again"):
        folder.promise()


def test_a_second_release_is_accepted_once_and_then_goes_on(place):
    place.run(PLAN, ROWS, accept_second_release=True, until=until(20))
    assert 2 == place.run(PLAN, ROWS).releases
    assert 2 == place.run(PLAN, ROWS, accept_second_release=True).releases
    assert 30 == PublicFolder(place.public).view("flights", "step").value.shape[0]


def test_a_release_that_was_charged_and_not_yet_begun_is_not_charged_again(place, monkeypatch):
    with monkeypatch.context() as patched:

        def killed(*_):
            raise SystemExit

        patched.setattr(Publisher, "prepare", killed)
        with pytest.raises(SystemExit):
            place.run(PLAN, ROWS, accept_second_release=True)
    before = place.numbers()
    assert (30, 2) == (place.run(PLAN, ROWS).last, place.run(PLAN, ROWS).releases)
    assert {f"superseded/1/{name}" for name in before} <= set(place.files())


def test_a_lost_store_starts_again_at_its_own_cost(place):
    before = place.numbers()
    shutil.rmtree(place.root / "private")
    outcome = place.run(PLAN, ROWS, accept_second_release=True)
    assert (0, 30, 2) == (outcome.first, outcome.last, outcome.releases)
    assert {f"superseded/1/{name}" for name in before} <= set(place.files())


def test_a_store_and_a_mark_that_are_both_lost_are_charged_for_what_is_published(place):
    shutil.rmtree(place.root / "private")
    shutil.rmtree(place.root / "marks")
    with pytest.raises(StoreBehind, match="knows what"):
        place.run(PLAN, ROWS)
    assert 2 == place.run(PLAN, ROWS, accept_second_release=True).releases


def test_reused_words_would_be_caught(place, monkeypatch):
    def reused(plan, *, state, step):
        return seeded_meter(1, plan, state, step)

    monkeypatch.setattr(measuring, "Meter", reused)
    shutil.rmtree(place.root)
    place.run(PLAN, ROWS, until=until(10))
    backup = place.root / "backup"
    shutil.copytree(place.root / "private", backup)
    place.run(PLAN, ROWS, until=until(20))
    first = measured(place)
    shutil.rmtree(place.root / "private")
    shutil.copytree(backup, place.root / "private")
    place.run(PLAN, ROWS, accept_second_release=True, until=until(20))
    assert not (first[10:20] != measured(place)[10:20]).all()


def test_two_stores_of_one_plan_and_one_stream_have_independent_noise(memory_path):
    plan = stand.plan_of(end=2000)
    noise = []
    for name in "ab":
        place = stand.Place(memory_path / name)
        place.run(plan, stand.rows(count=0))
        noise.append(measured(place).reshape(-1).astype(float))
    correlation = np.corrcoef(*noise)[0, 1]  # of 8000 draws; it fails once in a million runs
    assert (noise[0] != noise[1]).all()
    assert abs(correlation) < 5 / np.sqrt(len(noise[0]))


@pytest.mark.parametrize("hours", [0, 10])
def test_a_copied_store_is_noticed(memory_path, hours):
    place = stand.Place(memory_path)
    place.run(PLAN, ROWS, until=until(hours))
    copy = memory_path / "copy"
    shutil.copytree(memory_path / "private", copy)
    settings = replace(place.settings, store="copy/a.tidegauge")
    with pytest.raises(StoreBehind, match="two copies"):
        running.run(PLAN, stand.Rows(ROWS), settings)


def test_a_whole_folder_that_is_copied_before_its_first_block_is_noticed(memory_path):
    first, second = stand.Place(memory_path / "a"), stand.Place(memory_path / "b")
    first.run(PLAN, ROWS, until=until(0))
    shutil.copytree(first.root, second.root)
    before = second.files()
    first.run(PLAN, ROWS, until=until(10))
    with pytest.raises(StoreBehind, match=r"two copies.*It has published nothing\."):
        second.run(PLAN, ROWS, until=until(10))
    assert before == second.files()
    assert 1 == first.run(PLAN, ROWS).releases


@pytest.mark.parametrize("hours", [0, 10])
def test_a_store_that_was_moved_goes_on(memory_path, hours):
    place = stand.Place(memory_path)
    place.run(PLAN, ROWS, until=until(hours))
    (memory_path / "private").rename(memory_path / "moved")
    settings = replace(place.settings, store="moved/a.tidegauge")
    assert 1 == running.run(PLAN, stand.Rows(ROWS), settings).releases


def test_a_store_of_another_plan_is_refused_and_both_plans_are_named(memory_path):
    place = stand.Place(memory_path)
    place.run(PLAN, ROWS, until=until(10))
    other = stand.plan_of(end=29)
    with pytest.raises(StoreMismatch) as caught:
        place.run(other, ROWS)
    assert PLAN.fingerprint in str(caught.value)
    assert other.fingerprint in str(caught.value)


def test_a_public_folder_of_another_plan_is_refused(memory_path):
    place = stand.Place(memory_path)
    place.run(PLAN, ROWS, until=until(10))
    shutil.rmtree(memory_path / "private")
    shutil.rmtree(memory_path / "marks")
    with pytest.raises(StoreMismatch, match="folder of its own"):
        place.run(stand.plan_of(end=29), ROWS)


def test_a_view_that_is_added_later_has_the_bytes_it_would_have_had(memory_path):
    fewer = stand.plan_of(end=30)
    gauge = fewer.gauges[0]
    views = gauge.views[:2]
    mechanism = replace(gauge.mechanism, views=views)
    gauge = replace(gauge, views=views, every=(), mechanism=mechanism)
    without = replace(fewer, gauges=(gauge,))
    assert fewer.fingerprint == without.fingerprint
    place = stand.Place(memory_path)
    place.run(without, ROWS, until=until(10))
    place.run(without, ROWS, until=until(20))
    place.run(fewer, ROWS, until=until(30))
    for view in ("day", "recent"):
        files = place.public / "releases" / "flights" / view
        released = stand.pl.read_parquet(files / "*.parquet")
        assert released.equals(PublicFolder(place.public).view("flights", view).table())
        assert 3 == len(list(files.iterdir()))


def test_the_default_mark_lies_in_the_state_directory_and_is_found_after_a_move(
    memory_path, monkeypatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(memory_path / "state"))
    place = stand.Place(memory_path)
    settings = replace(place.settings, mark=None)
    running.run(PLAN, stand.Rows(ROWS), settings, until=until(10))
    (mark,) = (memory_path / "state" / "tidegauge" / "marks").glob("*.mark")
    assert 0o600 == mark.stat().st_mode & 0o777
    backup = place.store.read_bytes()
    moved = replace(settings, store="moved.tidegauge")
    place.store.rename(memory_path / "moved.tidegauge")
    (mark.parent / "another.mark").write_text("not a mark")  # none of this store's business
    assert 1 == running.run(PLAN, stand.Rows(ROWS), moved, until=until(20)).releases
    (memory_path / "moved.tidegauge").unlink()
    place.store.write_bytes(backup)  # an old copy, where only an old mark lies
    with pytest.raises(StoreBehind, match="Expected 20 steps"):
        running.run(PLAN, stand.Rows(ROWS), replace(settings, public="other"))


def test_a_mark_beside_its_store_is_warned_of(memory_path):
    settings = replace(stand.Place(memory_path).settings, mark="private/a.mark")
    outcome = running.run(PLAN, stand.Rows(ROWS), settings, until=until(10))
    assert "lies beside its store" in outcome.warnings[0]


def restored(place):
    shutil.rmtree(place.root / "private")
    shutil.copytree(place.root / "backup", place.root / "private")


@pytest.mark.parametrize("public", [True, False])
def test_a_store_older_than_an_accepted_release_is_refused_and_nothing_is_forgotten(place, public):
    place.run(PLAN, ROWS, accept_second_release=True, until=until(10))  # the steps are equal
    restored(place)
    mark = place.mark.read_bytes()
    if not public:
        shutil.rmtree(place.public)
    before = place.files()
    with pytest.raises(StoreBehind, match="Expected 2 releases"):
        place.run(PLAN, ROWS)
    assert (mark, before) == (place.mark.read_bytes(), place.files())
    assert 3 == place.run(PLAN, ROWS, accept_second_release=True).releases


def test_a_ledger_remembers_a_release_that_store_and_mark_forgot(place):
    backup = place.mark.read_bytes().replace(b'"step": 20', b'"step": 10')
    text, _ = backup.decode().rstrip("\n").rsplit("\n", 1)
    place.run(PLAN, ROWS, accept_second_release=True, until=until(10))
    restored(place)
    digest = hashlib.sha256(text.encode()).hexdigest()
    place.mark.write_text(f"{text}\n{digest}\n")
    with pytest.raises(StoreBehind, match="does not know 1 of the 2 releases"):
        place.run(PLAN, ROWS)
    assert 3 == place.run(PLAN, ROWS, accept_second_release=True).releases


def test_releases_of_one_day_and_step_are_all_charged(place):
    for releases in (2, 3, 4):
        outcome = place.run(PLAN, ROWS, accept_second_release=True, until=until(20))
        assert releases == outcome.releases
        restored(place)
    ledger = json.loads(place.files()["ledger.json"])
    assert 4 == len({charge["id"] for charge in ledger["charges"]})
    assert {"1", "2", "3"} == {path.name for path in (place.public / "superseded").iterdir()}


def test_a_mark_never_forgets_a_release_nor_a_step(place):
    file = MarkFile(place.mark, place.store)
    (mark,) = file.read("")
    for less in (replace(mark, spends=()), replace(mark, step=10)):
        with pytest.raises(StoreBehind, match="knows of more"):
            file.write(less)
    assert [mark] == file.read("")


@pytest.mark.parametrize("hours", [0, 10])
def test_another_store_of_the_plan_does_not_publish_into_the_folder(memory_path, hours):
    place = stand.Place(memory_path)
    place.run(PLAN, ROWS, until=until(hours))
    before = place.files()
    other = replace(place.settings, store="other.tidegauge", mark="marks/other.mark")
    with pytest.raises(StoreBehind, match="publish into another folder"):
        running.run(PLAN, stand.Rows(ROWS), other)
    own = replace(other, public="other")
    assert 1 == running.run(PLAN, stand.Rows(ROWS), own).releases
    with pytest.raises(StoreBehind, match="publish into another folder"):  # though not behind
        running.run(PLAN, stand.Rows(ROWS), other)
    assert before == place.files()
    both = running.run(PLAN, stand.Rows(ROWS), other, accept_second_release=True)
    assert 3 == both.releases  # each of the two, and what was accepted
    with pytest.raises(StoreBehind, match="publish into another folder"):
        place.run(PLAN, ROWS)


def test_an_accepted_store_at_another_path_goes_on_without_further_cost(memory_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(memory_path / "state"))
    place = stand.Place(memory_path)
    settings = replace(place.settings, mark=None)
    moved = replace(settings, store="moved.tidegauge")

    def run(where, hours, **options):
        return running.run(PLAN, stand.Rows(ROWS), where, until=until(hours), **options)

    run(settings, 10)
    shutil.copy(place.store, memory_path / "moved.tidegauge")
    run(settings, 20)
    with pytest.raises(StoreBehind, match="Expected 20 steps"):
        run(moved, 12)
    assert 2 == run(moved, 12, accept_second_release=True).releases
    assert 2 == run(moved, 14).releases
    assert 2 == run(moved, 16, accept_second_release=True).releases
    with pytest.raises(StoreBehind, match="Expected 2 releases"):  # the one it took the place of
        run(settings, 30)


def test_copies_of_equal_steps_are_refused_wherever_their_marks_are_named(memory_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(memory_path / "state"))
    place = stand.Place(memory_path)
    first = replace(place.settings, mark=None)
    second = replace(first, store="second.tidegauge")
    running.run(PLAN, stand.Rows(ROWS), first, until=until(10))
    place.store.rename(memory_path / "second.tidegauge")
    running.run(PLAN, stand.Rows(ROWS), second, until=until(10))
    shutil.copy(memory_path / "second.tidegauge", place.store)  # both have a mark of 10 steps
    for settings in (first, second):
        with pytest.raises(StoreBehind, match="two copies"):
            running.run(PLAN, stand.Rows(ROWS), settings)


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff", None])
def test_a_broken_ledger_is_refused_with_a_remedy(memory_path, damage):
    place = stand.Place(memory_path)
    place.run(PLAN, ROWS, until=until(10))
    backup = place.store.read_bytes()
    place.run(PLAN, ROWS, until=until(20))
    ledger = place.public / "ledger.json"
    ledger.unlink()
    if damage is not None:
        ledger.write_bytes(damage)
    with pytest.raises(StoreMismatch, match="Bring that file back"):
        place.run(PLAN, ROWS)
    place.store.write_bytes(backup)
    with pytest.raises(StoreMismatch, match="Bring that file back"):
        place.run(PLAN, ROWS, accept_second_release=True)


def test_a_foreign_file_among_measurements_is_nobodys_step(memory_path):
    place = stand.Place(memory_path)
    place.run(PLAN, ROWS, until=until(10))
    folder = place.public / "measurements" / "flights"
    for name in ("copy.parquet", "99.parquet", "٠٠٠٠٠٠٠٠٠٠٩٩.parquet"):
        (folder / name).write_bytes(b"")
    assert (20, 1) == (place.run(PLAN, ROWS, until=until(20)).last, 1)


def test_a_damaged_charge_is_refused_as_damage(memory_path):
    place = stand.Place(memory_path)
    place.run(PLAN, ROWS, until=until(10))
    with sqlite3.connect(place.store) as connection:
        connection.execute("INSERT INTO spend (entry) VALUES ('{}')")
    connection.close()
    with pytest.raises(StoreBehind, match="damaged"):
        place.run(PLAN, ROWS)


def test_a_mark_of_no_step_still_remembers_what_was_charged_before(place):
    for accept in (True, False):
        shutil.rmtree(place.root / "private")
        shutil.rmtree(place.public)
        if accept:
            place.run(PLAN, ROWS, accept_second_release=True, until=until(0))
    with pytest.raises(StoreBehind, match="got none"):
        place.run(PLAN, ROWS)


def test_a_ledger_is_not_replaced_by_one_of_fewer_releases(place):
    before = place.files()
    with pytest.raises(StoreBehind, match="does not know 1 of the 1"):
        Publisher(place.public, PLAN, version="0").prepare([])
    assert before == place.files()


def test_a_copy_of_no_steps_that_is_let_pass_would_be_caught(memory_path, monkeypatch):
    check = MarkFile.check

    def passed(self, marks, store, step, spends):
        if step:
            check(self, marks, store, step, spends)

    monkeypatch.setattr(MarkFile, "check", passed)
    with pytest.raises(pytest.fail.Exception):
        test_a_whole_folder_that_is_copied_before_its_first_block_is_noticed(memory_path)


def test_noise_of_open_blocks_is_drawn_anew_where_a_further_release_begins(memory_path):
    """It was drawn before the step, and the two releases may show it under different totals."""
    views = tuple(pair for pair in stand.VIEWS if pair[0] in ("running", "daily"))
    plan, place = stand.plan_of(end=48, pure=True, views=views), stand.Place(memory_path)
    strategy = plan.gauges[0].mechanism.strategy
    assert isinstance(strategy, OpenBlocks)
    assert (1, 9) == strategy.levels  # noise of steps 11 to 18 is drawn at step 10
    place.run(plan, ROWS, until=until(10))
    rows = len(measured(place))
    backup = memory_path / "backup"
    shutil.copytree(memory_path / "private", backup)
    place.run(plan, ROWS, until=until(18))
    first = measured(place)
    shutil.rmtree(memory_path / "private")
    shutil.copytree(backup, memory_path / "private")
    place.run(plan, ROWS, until=until(18), accept_second_release=True)
    second = measured(place)
    assert (first[:rows] == second[:rows]).all()
    apart = (first[rows:] != second[rows:]).mean(axis=1)
    assert apart.mean() > 0.8


def test_noise_of_open_blocks_that_is_kept_would_be_noticed(memory_path, monkeypatch):
    monkeypatch.setattr(Meter, "begin_again", lambda meter: None)
    with pytest.raises(AssertionError):
        test_noise_of_open_blocks_is_drawn_anew_where_a_further_release_begins(memory_path)


def test_tests_of_chosen_cells_begin_anew_where_a_further_release_does(memory_path, monkeypatch):
    plan, place, begun = stand.chosen_plan_of(end=30), stand.Place(memory_path), []
    again = Selector.begin_again

    def counted(selector):
        begun.append(selector.step)
        again(selector)

    monkeypatch.setattr(Selector, "begin_again", counted)
    place.run(plan, ROWS, until=until(10))
    backup = memory_path / "backup"
    shutil.copytree(memory_path / "private", backup)
    place.run(plan, ROWS, until=until(20))
    assert [] == begun
    shutil.rmtree(memory_path / "private")
    shutil.copytree(backup, memory_path / "private")
    assert 2 == place.run(plan, ROWS, accept_second_release=True, until=until(20)).releases
    assert [10] == begun
    assert 2 == place.run(plan, ROWS).releases
    assert [10] == begun  # the stored threshold is the further release's own
    spent = json.loads(place.files()["ledger.json"])
    assert 4 == len(spent["charges"])
