"""What the tests of CSV files share."""

import gzip

import pytest


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="file.csv"):
        path = tmp_path / name
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return str(path)

    return write_file
