"""What tests of configs share."""

import pytest

from tidegauge.planning.config import config_of


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Read a config from a file in an empty folder, which is the working folder."""
    monkeypatch.chdir(tmp_path)

    def read(text, name="c.yaml"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return config_of(name)

    return read
