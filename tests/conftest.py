"""Settings for all tests."""

import gc

import pytest
from hypothesis import settings

# The first example of a compiled function includes its compilation: time limits mean nothing.
settings.register_profile("kernelstream", deadline=None, print_blob=True)
settings.load_profile("kernelstream")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the garbage collector leave out all that was imported and collected.

    It would take half a second to look at it, and River's checks collect after every few rows.
    """
    gc.freeze()
