"""Ray, started or found: imported only when asked for."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: What a Ray of our own reads from the environment, where the user has not set it.
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray's own switch for "this machine only": every socket is then bound to 127.0.0.1.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
}


def import_ray() -> Any:
    """The module ray; ``ImportError`` with the cure where it is not installed."""
    if "ray" not in sys.modules:  # it reads some of its settings when it is imported
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        if os.environ["RAY_AUTH_MODE"] == "token" and "RAY_AUTH_TOKEN_PATH" not in os.environ:
            # Known to this process and its children alone; else Ray writes one into the home.
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            "the Ray engine needs Ray: pip install 'kernelstream[ray]' (the local engine gives "
            "the same models without it)"
        ) from error
    return ray


@contextmanager
def ray_session(address: str | None = None, processors: int | None = None) -> Iterator[Any]:
    """Ray, connected; what was started here is shut down at the end.

    Parameters
    ----------
    address : str, optional
        Of a running cluster. Without it the session that this process has is used, and if it has
        none a Ray on this machine is started, reachable from this machine only.
    processors : int, optional
        That a Ray started here may use; by default all.
    """
    ray = import_ray()
    ours = not ray.is_initialized()
    if ours and address is not None:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    elif ours:
        ray.init(
            address="local",  # never the cluster that RAY_ADDRESS may name
            num_cpus=processors,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
        )
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()
