"""`plan --compare`, `--for-error` and `--plot` as users meet them, wrong uses included."""

import json
import shutil

import pytest
from terminals import in_process as tidegauge


def plan(shop, *words, code=0):
    ended, out, err = tidegauge("plan", "visits.yaml", *words, cwd=shop)
    assert code == ended, (out, err)
    return out if code == 0 else err


def test_the_budget_that_is_found_gives_in_the_config_the_plan_that_was_shown(shop):
    found = json.loads(plan(shop, "--for-error", "running=40", "--json"))
    answer = found.pop("for_error")
    text = (shop / "visits.yaml").read_text()
    (shop / "visits.yaml").write_text(text.replace("epsilon: 1.0", f"epsilon: {answer['written']}"))
    assert found == json.loads(plan(shop, "--json"))
    running = next(v for v in found["gauges"][0]["views"] if v["name"] == "running")
    assert answer["views"][0]["half_width"] >= max(running["half_width"])
    assert 39 < answer["views"][0]["half_width"] <= 40


def test_candidates_have_the_plan_that_is_shown_among_them(shop):
    told = json.loads(plan(shop, "--compare", "--json"))
    (gauge,) = told["compared"]
    (chosen,) = [one for one in gauge["candidates"] if one["chosen"]]
    for view, shown in zip(chosen["views"], told["gauges"][0]["views"], strict=True):
        assert view["name"] == shown["name"]
        assert view["ratio"] == pytest.approx(shown["ratio"])
        assert 1 - 1e-9 < view["worst_std"] / max(shown["noise_std"]) < 1.1
    assert all(one["verdict"] for one in gauge["candidates"])


def test_what_is_chosen_has_one_name_in_all_that_is_told(shop):
    told = json.loads(plan(shop, "--compare", "--json"))
    (chosen,) = [one for one in told["compared"][0]["candidates"] if one["chosen"]]
    name = told["gauges"][0]["measures"]
    assert name == chosen["strategy"]
    assert name.startswith("blocks of 1 and ")
    assert f", as {name}, with" in plan(shop, "--statement")


def test_an_anticipated_view_is_told_as_such(shop):
    text = (shop / "visits.yaml").read_text()
    (shop / "visits.yaml").write_text(text.replace("1d]}", "1d], anticipate: [2d]}"))
    (gauge,) = json.loads(plan(shop, "--compare", "--json"))["compared"]
    published = {view["name"]: view["published"] for view in gauge["candidates"][0]["views"]}
    assert {"step": True, "running": True, "window_1d": True, "window_48": False} == published


@pytest.mark.parametrize(
    ("errors", "hint"),
    [
        (["runing=5"], "Did you mean 'running'?"),
        (["running=-5"], "number above 0"),
        (["running=nan"], "number above 0"),
        (["running=inf"], "number above 0"),
        (["running"], "Did you mean 'running'?"),
        (["running=5", "x=5"], "The views here are step, running, window_1d."),
    ],
)
def test_wrong_errors_are_wrong_uses(shop, errors, hint):
    words = [word for error in errors for word in ("--for-error", error)]
    assert hint in plan(shop, *words, code=2)


@pytest.mark.parametrize("privacy", ["epsilon: 1.0, delta: 1.0e-9", "epsilon: 1", "mu: 1"])
@pytest.mark.parametrize(("error", "warned"), [("0.5", True), ("40", False)])
def test_a_budget_that_hides_little_is_warned_of(shop, privacy, error, warned):
    text = (shop / "visits.yaml").read_text().replace("1d]", "1d], level: 0.9999")
    (shop / "visits.yaml").write_text(text.replace("epsilon: 1.0, delta: 1.0e-9", privacy))
    words = ("plan", "visits.yaml", "--for-error", f"running={error}", "--json")
    code, out, err = tidegauge(*words, cwd=shop)
    assert 0 == code, err
    assert warned is (json.loads(out)["epsilon"] > 10)
    assert warned is ("Warning: this error takes epsilon" in err)


def test_an_error_out_of_reach_is_a_wrong_config(shop):
    text = (shop / "visits.yaml").read_text()
    (shop / "visits.yaml").write_text(text.replace("epsilon: 1.0, delta: 1.0e-9", "mu: 1"))
    assert "can be reached" in plan(shop, "--for-error", "running=1e-9", code=78)


def test_a_picture_of_the_noise(shop):
    plan(shop, "--plot", "noise.svg")
    text = (shop / "noise.svg").read_text()
    for words in ("step (in 1 hour)", "running (since the start)", "window_1d (in 1 day)"):
        assert f"<!-- {words} -->" in text
    plan(shop, "--plot", "noise.png")
    assert (shop / "noise.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("noise.gif", ".png or .svg"),
        ("noise", ".png or .svg"),
        ("public/noise.svg", "which the plan works with"),
        ("picture.svg", "which the plan works with"),
    ],
)
def test_a_picture_overwrites_nothing_and_has_a_type(shop, path, why):
    text = (shop / "visits.yaml").read_text()
    (shop / "visits.yaml").write_text(text.replace("mark: visits.mark", "mark: picture.svg"))
    assert why in plan(shop, "--plot", path, code=2)
    assert not (shop / path).exists()


@pytest.mark.parametrize(
    ("option", "name"), [("-o", "notes.txt"), ("--plot", "drawn.svg"), ("--plot", "drawn.png")]
)
def test_a_file_that_is_there_is_written_over_by_force_alone(shop, option, name):
    (shop / name).write_text("months of work")
    err = plan(shop, option, name, code=2)
    assert "to name no file yet" in err
    assert "--force" in err
    assert "months of work" == (shop / name).read_text()
    plan(shop, option, name, "--force")
    assert b"months of work" != (shop / name).read_bytes()


def test_nothing_is_written_if_one_of_two_files_is_refused(shop):
    (shop / "drawn.svg").write_text("months of work")
    plan(shop, "-o", "plan.json", "--plot", "drawn.svg", code=2)
    assert not (shop / "plan.json").exists()


def test_the_plan_file_that_is_there_already_needs_no_force(shop):
    plan(shop, "-o", "plan.json")
    before = (shop / "plan.json").read_bytes()
    plan(shop, "-o", "plan.json")
    assert before == (shop / "plan.json").read_bytes()
    text = (shop / "visits.yaml").read_text()
    (shop / "visits.yaml").write_text(text.replace("epsilon: 1.0", "epsilon: 2.0"))
    assert "to name no file yet" in plan(shop, "-o", "plan.json", code=2)
    assert before == (shop / "plan.json").read_bytes()


@pytest.mark.parametrize("words", [[], ["--force"]])
def test_no_force_writes_over_a_store(shop, words):
    code, _, err = tidegauge("run", "visits.yaml", "-q", cwd=shop)
    assert 0 == code, err
    shutil.copy(shop / "visits.tidegauge", shop / "other.tidegauge")
    before = (shop / "other.tidegauge").read_bytes()
    plan(shop, "-o", "other.tidegauge", *words, code=2)
    assert before == (shop / "other.tidegauge").read_bytes()


def test_streams_that_outlast_the_calendar_are_drawn_by_steps(shop):
    text = (shop / "visits.yaml").read_text()
    text = text.replace("end: 2025-01-13T00:00:00Z", "horizon: 1000000000")
    (shop / "visits.yaml").write_text(text)
    plan(shop, "--plot", "noise.svg")
    assert "<!-- number of the step -->" in (shop / "noise.svg").read_text()


def test_a_plan_file_is_settled(shop):
    plan(shop, "-o", "plan.json")
    for words in (["--compare"], ["--for-error", "running=5"]):
        code, _, err = tidegauge("plan", "plan.json", *words, cwd=shop)
        assert 2 == code
        assert "is settled" in err
    code, _, err = tidegauge("plan", "plan.json", "--plot", "noise.svg", cwd=shop)
    assert (0, True) == (code, (shop / "noise.svg").exists()), err


def test_a_plan_file_of_another_budget_is_not_written(shop):
    err = plan(shop, "--for-error", "running=5", "-o", "plan.json", code=2)
    assert "got both" in err
    assert not (shop / "plan.json").exists()


def test_candidates_are_those_of_the_budget_that_is_found(shop):
    told = json.loads(plan(shop, "--for-error", "running=40", "--compare", "--json"))
    (chosen,) = [one for one in told["compared"][0]["candidates"] if one["chosen"]]
    shown = {view["name"]: view["ratio"] for view in told["gauges"][0]["views"]}
    assert shown == {view["name"]: pytest.approx(view["ratio"]) for view in chosen["views"]}


def test_what_a_store_has_accepted_is_not_what_a_new_one_would_choose(shop):
    text = (shop / "visits.yaml").read_text()
    named = text.replace("1d]}", "1d], strategy: InputPerturbation}")
    (shop / "visits.yaml").write_text(named)
    assert 0 == tidegauge("run", "visits.yaml", cwd=shop)[0]
    said = "The store has accepted other strategies for visits"
    assert said not in tidegauge("plan", "visits.yaml", "--compare", cwd=shop)[2]
    (shop / "visits.yaml").write_text(text)
    code, out, err = tidegauge("plan", "visits.yaml", "--compare", cwd=shop)
    assert (0, True) == (code, said in err)
    assert "the stream itself" in out
