"""The command line: ``kernelstream learn``, ``predict``, ``evaluate``, ``inspect`` and more."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the tool; what the user can put right is one line on standard error, exit code 2."""
    if sys.argv[1:] == ["--version"]:
        from kernelstream._version import __version__

        print(__version__)
        sys.exit(0)
    try:
        from kernelstream.cli.starting import collect_rarely, use_one_thread

        collect_rarely()
        use_one_thread()
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
