"""What is in the place of a store, a plan or an output is told by its name, with its own remedy."""

import os

import pytest
from terminals import in_process as tidegauge
from visits import CONFIG, rows_of_visits, write_visits


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    shop = write_visits(tmp_path_factory.mktemp("places"), rows_of_visits())
    code, _, err = tidegauge("run", "visits.yaml", "--until", "2025-01-08T00:00:00Z", cwd=shop)
    assert 0 == code, err
    return shop


@pytest.mark.parametrize("content", [b"", b"hello", b"[]", None])
def test_a_published_plan_that_was_changed_is_told_by_its_name(shop, content):
    plan = shop / "public" / "plan.json"
    before = plan.read_bytes()
    plan.unlink()
    try:
        if content is None:
            plan.mkdir()
        else:
            plan.write_bytes(content)
        code, _, err = tidegauge("export", "public", "--view", "step", cwd=shop)
        assert 69 == code
        assert "plan.json" in err
        assert "Write one with" not in err
        code, _, err = tidegauge("run", "visits.yaml", cwd=shop)
        assert 78 == code
        assert f"public{os.sep}plan.json" in err
        assert "Bring that file back" in err
    finally:
        plan.rmdir() if content is None else plan.unlink()
        plan.write_bytes(before)


@pytest.mark.parametrize(
    ("make", "got"),
    [
        (lambda path: path.write_bytes(b""), "an empty file"),
        (lambda path: path.write_bytes(b"\n"), ""),
        (lambda path: path.mkdir(), "something that is no file"),
        (os.mkfifo, "something that is no file"),
        (lambda path: None, "got nothing"),
    ],
)
def test_status_of_no_store_is_told_as_such(shop, tmp_path, make, got):
    make(tmp_path / "store")
    code, out, err = tidegauge("status", tmp_path / "store", cwd=shop)
    assert (78, "") == (code, out)
    assert "Expected a store at" in err
    assert got in err


def test_a_file_in_the_place_of_the_public_folder_is_not_a_full_disk(tmp_path):
    shop = write_visits(tmp_path, rows_of_visits(), CONFIG.replace("public: public", "public: p"))
    (shop / "p").write_text("in the way")
    code, _, err = tidegauge("run", "visits.yaml", cwd=shop)
    assert 74 == code
    assert "correct the path" in err
    assert "Make room" not in err


@pytest.mark.parametrize("words", [["export", "public", "--view", "step"], ["plot", "public"]])
def test_an_output_in_no_folder_cannot_be_written(shop, words):
    output = "nowhere/picture.png" if words[0] == "plot" else "nowhere/x.csv"
    code, _, err = tidegauge(*words, "-o", output, cwd=shop)
    assert 74 == code
    assert "a folder that is there" in err
    assert "resumes" not in err


def test_the_mark_of_a_store_is_told(tmp_path):
    text = CONFIG.replace("mark: visits.mark\n", "")
    shop = write_visits(tmp_path / "shop", rows_of_visits(), text)
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    assert 0 == tidegauge("run", "visits.yaml", cwd=shop, **state)[0]
    (mark,) = (tmp_path / "state").rglob("*.mark")
    assert f"Mark: {mark}" in tidegauge("status", "visits.tidegauge", cwd=shop, **state)[1]
    (shop / "visits.tidegauge").unlink()
    code, _, err = tidegauge("run", "visits.yaml", cwd=shop, **state)
    assert 5 == code
    assert f"its mark {mark} says, got none" in err
    assert not (shop / "visits.tidegauge").exists()


def test_a_view_that_is_no_yaml_has_its_remedy_on_a_line_of_its_own(shop):
    code, _, err = tidegauge("export", "public", "--view", "{window: ", cwd=shop)
    assert 2 == code
    assert "\nPublished views are" in err


def test_a_refused_number_is_shown_as_it_is_written(shop):
    _, _, err = tidegauge("export", "public", "--view", "{half_life: 1us}", cwd=shop)
    assert "got half_life=1/3600000000." in err
