"""Settings for all tests."""

from hypothesis import settings

# The first example of a compiled function includes its compilation: time limits mean nothing.
settings.register_profile("kernelstream", deadline=None, print_blob=True)
settings.load_profile("kernelstream")
