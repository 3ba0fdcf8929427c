"""The command line: ``kernelstream learn``, ``predict``, ``evaluate``, ``inspect`` and more."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from typing import Any


def main() -> None:
    """Run the tool; what the user can put right is one line on standard error, exit code 2."""
    if sys.argv[1:] == ["--version"]:
        from kernelstream._version import __version__

        print(__version__)
        sys.exit(0)
    try:
        _put_off("pandas", "scipy.stats")
        from kernelstream.cli.app import run

        run()
    except ModuleNotFoundError as error:
        print(
            f"kernelstream: the command line needs {error.name}; pip install 'kernelstream[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    except KeyboardInterrupt:  # before the command listens for it, or after
        sys.exit(130)


def _put_off(*names: str) -> None:
    """Import modules when something of them is first used.

    scikit-learn imports these whether they are used or not, which takes longer than all the rest.
    """
    for name in names:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            sys.modules.setdefault(name, _Later(name))


class _Later(types.ModuleType):
    """In the place of a module until an attribute of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)
