"""Ray, started or found: imported only when asked for; and what its actors share."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from kernelstream.network._messages import Name

#: What a Ray of our own reads from the environment, where the user has not set it.
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray's own switch for "this machine only": every socket is then bound to 127.0.0.1.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    # What later versions do in any case; older ones warn that they do not yet.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}

#: Marks a folder of checkpoints that is in use.
MARK = "engine.json"

#: Guards the two numbers below.
_lock = threading.Lock()
#: The address of the Ray that was started here, and how many sessions use it.
_started: str | None = None
_users = 0


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


def current_session(ray: Any) -> str | None:
    """The address of the Ray that this process is connected to; None without one."""
    return str(ray.get_runtime_context().gcs_address) if ray.is_initialized() else None


@contextmanager
def ray_session(address: str | None = None, processors: int | None = None) -> Iterator[Any]:
    """Ray, connected; what was started here is shut down by the last session that uses it.

    Without the address of a running cluster the session that this process has is used, and if it
    has none a Ray with so many processors is started, reachable from this machine only.
    """
    global _started, _users
    ray = import_ray()
    with _lock:
        if not ray.is_initialized():
            # "local": never the cluster that RAY_ADDRESS may name.
            own = {"address": "local", "num_cpus": processors, "include_dashboard": False}
            given = own if address is None else {"address": address}
            ray.init(log_to_driver=False, logging_level="ERROR", **given)
            _started, _users = current_session(ray), 0
        session = current_session(ray)
        ours = session == _started
        _users += ours
    try:
        yield ray
    finally:
        with _lock:
            # Whoever has shut it down meanwhile may have started another one since.
            if ours and session == _started:
                _users -= 1
                if _users == 0:
                    _started = None
                    if current_session(ray) == session:
                        ray.shutdown()


def end_actors(ray: Any, session: str | None, actors: dict[Name, Any]) -> None:
    """End their processes."""
    if current_session(ray) == session:  # else they went with their Ray
        for actor in actors.values():
            ray.kill(actor, no_restart=True)


def claim(folder: Path) -> None:
    """Claim a folder of checkpoints; refuse one that another engine uses."""
    mark, here = folder / MARK, socket.gethostname()
    try:
        found = json.loads(mark.read_text())
        known = Path("/proc/self").exists() and found["host"] == here
        if known and not Path(f"/proc/{found['process']}").exists():
            mark.unlink(missing_ok=True)  # its process has ended without closing
    except (OSError, ValueError, KeyError, TypeError):
        found = None
    try:
        with mark.open("x") as file:
            json.dump({"host": here, "process": os.getpid()}, file)
    except FileExistsError:
        raise RuntimeError(
            f"another engine keeps its agents in {folder} ({found}): give each a folder of its "
            f"own, or close the other one. If there is none any more, delete {mark}"
        ) from None


def blas_threads() -> int:
    """Of this process. The bits of a product depend on how many threads share it."""
    found = [library["num_threads"] for library in threadpool_info()
             if library["user_api"] == "blas"]  # fmt: skip
    return max(found, default=1)
