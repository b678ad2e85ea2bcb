"""A small shop with a door counter: what the end-to-end tests publish."""

import pytest
from visits import rows_of_visits, write_visits


@pytest.fixture
def shop(tmp_path):
    return write_visits(tmp_path / "shop", rows_of_visits())
