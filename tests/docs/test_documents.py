"""README and pages: every Python example runs, every link leads somewhere, all are reached."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
CODE = re.compile(r"```python\n(.*?)```", re.S)
ELSEWHERE = {"choosing.md"}  # whose code and figures test_choosing.py runs and compares
LINK = re.compile(r"\]\(([^)#]+)")


def test_there_are_pages():
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files(page):
    for target in LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize(
    "page", [p for p in PAGES if CODE.search(p.read_text()) and p.name not in ELSEWHERE],
    ids=lambda p: str(p.relative_to(ROOT)),
)  # fmt: skip
def test_python_examples_run(page):
    names = {}
    for block in CODE.findall(page.read_text()):
        exec(compile(block, str(page), "exec"), names)


def test_every_page_is_reached_from_the_readme():
    reached, open_pages = set(), [ROOT / "README.md"]
    while open_pages:
        page = open_pages.pop()
        if page in reached:
            continue
        reached.add(page)
        for target in LINK.findall(page.read_text()):
            file = (page.parent / target).resolve()
            if file.is_dir():
                open_pages.extend(file.glob("*.md"))
            elif file.suffix == ".md" and "://" not in target:
                open_pages.append(file)
    assert set(PAGES) == reached


def test_the_readme_leads_to_every_proof_page():
    named = set(re.findall(r"docs/proofs/(\w+\.md)", (ROOT / "README.md").read_text()))
    assert named == {page.name for page in ROOT.glob("docs/proofs/*.md")}


TESTS = "\n".join(file.read_text() for file in ROOT.glob("tests/**/*.py"))


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/proofs/*.md")), ids=lambda p: p.name)
def test_proof_pages_name_tests_that_exist(page):
    text = page.read_text()
    functions = re.findall(r"\b(test_\w+)\b(?!\.py)", text)
    files = re.findall(r"\b(?:tests/)?((?:\w+/)+test_\w+\.py)", text)
    assert functions or files, "a proof page names the test that fails if the claim is false"
    for file in files:
        assert (ROOT / "tests" / file).exists(), file
    for function in functions:
        assert f"def {function}(" in TESTS, function


def test_errata_name_tests_that_exist():
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", (ROOT / "docs" / "errata.md").read_text())
    assert len(named) > 20
    for file, function in named:
        (found,) = ROOT.glob(f"tests/**/{file}")
        assert f"def {function}(" in found.read_text(), function
