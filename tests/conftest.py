"""Settings for all tests."""

import gc

import pytest
from hypothesis import settings

# The first example of a compiled function includes its compilation: time limits mean nothing.
settings.register_profile("kernelstream", deadline=None, print_blob=True)
settings.load_profile("kernelstream")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first, in random order like the others.

    A long one at the end would leave a worker with nothing to do, and one worker gets all those
    that need Ray: the other one takes over tests from the end of its list.
    """
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the garbage collector leave out all that was imported and collected.

    It would take half a second to look at it, and River's checks collect after every few rows.
    """
    gc.freeze()
