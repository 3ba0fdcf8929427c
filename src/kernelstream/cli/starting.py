"""What makes short commands short: less to import, and less to take apart at the end."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from types import ModuleType


def collect_rarely() -> None:
    """Let the garbage collector rest while modules are imported, and at the end.

    What is imported stays, so that looking for garbage in it again and again finds nothing; and
    what the process leaves behind when it ends need not be looked at: together a quarter of the
    time of a short command.
    """
    gc.set_threshold(20_000)
    atexit.register(gc.freeze)


def use_one_thread() -> None:
    """Let BLAS make no threads, unless the environment says how many.

    Products that reach a model are computed by one anyway (``core/threads.py``); the others, made
    when NumPy is imported, would take a fifth of the time of a short command to wait for work.
    """
    for library in ("OPENBLAS", "MKL", "BLIS"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")


def import_scikit_learn() -> None:
    """Import scikit-learn without pandas and scipy.stats, a third of the time of a short command.

    Its ``utils.fixes`` imports both and uses neither then: pandas is optional to it, and SciPy
    finds its parts itself when they are asked for. Afterwards both are imported as ever.
    """
    absent = {"pandas": None, "scipy.stats": ModuleType("scipy.stats")}
    if "sklearn" in sys.modules or absent.keys() & sys.modules.keys():
        return
    sys.modules.update(absent)  # type: ignore[arg-type]  # None: not to be found
    try:
        import sklearn.base  # noqa: F401
    except (ImportError, AttributeError):  # of a version that uses them: it is imported as ever
        pass
    finally:
        for name in absent:
            del sys.modules[name]
