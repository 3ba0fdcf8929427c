"""What tests of the command line start from, for those that look at models through it."""

from tests.cli.conftest import rows, tool

__all__ = ["rows", "tool"]
