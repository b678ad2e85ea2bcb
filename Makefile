PYTHON ?= python3
BIN := .venv/bin

# Without compiled files every worker and every process of a test compiles all it imports anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup run groceries reproduce test coverage slow check bench docs plans choosing clean

help:            ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:[^#]*##/ -/'

setup: .venv/installed  ## make .venv with the package and everything it needs

.venv/installed: pyproject.toml constraints.txt
	@echo "Setting up .venv: one to four minutes, 1.3 GB"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

run: setup       ## publish a year of real flights privately; ends with a table and a picture
	$(BIN)/python examples/flights/prepare.py
	$(BIN)/tidegauge run examples/flights/flights.yaml
	$(BIN)/tidegauge plot examples/flights/output/public --view window_7d -o examples/flights/output/departures.png --force
	@echo "The statement: examples/flights/output/public/PRIVACY.md. The picture: examples/flights/output/departures.png"

groceries: setup ## publish what supermarket baskets cost, and hold: departments, products, the top ten
	$(BIN)/python examples/groceries/prepare.py
	$(BIN)/tidegauge run -q examples/groceries/baskets.yaml
	$(BIN)/tidegauge plot examples/groceries/output/spend -o examples/groceries/output/spend.png --force
	$(BIN)/tidegauge run -q examples/groceries/pharmacy.yaml
	$(BIN)/tidegauge run examples/groceries/groceries.yaml
	$(BIN)/tidegauge run -q examples/groceries/types.yaml
	$(BIN)/tidegauge plot examples/groceries/output/public --gauge types -o examples/groceries/output/types.png --force
	@echo "The statement: examples/groceries/output/public/PRIVACY.md. The pictures: examples/groceries/output/spend.png, types.png"

reproduce: setup ## compare the systems of the papers with ours; writes tables and figures
	for script in bolot perrier cardoso_rogers; do $(BIN)/python examples/reproduce/$$script.py || exit 1; done

test: setup      ## run the tests
	$(BIN)/python -m pytest -q -n auto -m "not slow"

coverage: setup  ## run the tests and tell which lines none of them reaches
	$(BIN)/python -m pytest -q -n auto -m "not slow" --cov --cov-report=term

slow: setup      ## run the tests that take minutes: a kill at every single write, a million steps
	$(BIN)/python -m pytest -q -n auto -m slow

check: setup     ## formatting, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup     ## print the figures of benchmarks/README.md, measured side by side
	for script in noise engine strategies live cold_start accuracy plans others flights products store papers clip clips cli; do $(BIN)/python benchmarks/$$script.py || exit 1; done

docs: setup      ## write docs/cli.md from the help texts
	$(BIN)/python -m tidegauge.cli.manual > docs/cli.md

plans: setup     ## fit docs/plans.json anew
	$(BIN)/python benchmarks/plans.py --write docs/plans.json

choosing: setup  ## draw the pictures of docs/choosing.md
	$(BIN)/tidegauge plan docs/choosing/hourly.yaml --plot docs/images/noise_hourly.png > /dev/null
	$(BIN)/tidegauge plan docs/choosing/weighted.yaml --plot docs/images/noise_weighted.png > /dev/null
	$(BIN)/tidegauge plan docs/choosing/pure.yaml --plot docs/images/noise_pure.png > /dev/null

clean:           ## remove the environment and everything generated
	rm -rf .venv build dist .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis examples/*/output
