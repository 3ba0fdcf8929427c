"""Modules that others import whether they use them or not, put off until something of them is used.

Together they take as long to import as all the rest that a short command needs.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

#: pandas and two parts of SciPy are imported by scikit-learn; the parts of NumPy by SciPy, which
#: looks at every name that NumPy has.
NAMES = ("pandas", "scipy.stats", "scipy.special", "numpy.f2py", "numpy.testing")


def put_off(*names: str) -> None:
    """From now on, importing these modules imports nothing until something of them is used."""
    sys.meta_path.insert(0, _Finder(names))


def put_off_no_more() -> None:
    """The modules themselves from now on: other packages look at what is in ``sys.modules``."""
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, _Finder)]
    for module in list(sys.modules.values()):
        if isinstance(module, _Later):
            module._finder.load(module)


class _Finder(MetaPathFinder, Loader):
    """Finds a stand-in wherever one of the modules is asked for, as long as nobody needs it."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = set(names)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname not in self.names:
            return None
        if "." not in fullname:  # an optional package that is not there must not seem to be
            self.names.discard(fullname)
            if importlib.util.find_spec(fullname) is None:
                return None
            self.names.add(fullname)
        return importlib.util.spec_from_loader(fullname, self)

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return _Later(spec.name, self)

    def exec_module(self, module: types.ModuleType) -> None:
        vars(module)["_ready"] = True

    def load(self, later: types.ModuleType) -> types.ModuleType:
        """The module itself, in the place of its stand-in."""
        name = later.__name__
        self.names.discard(name)
        if sys.modules.get(name) is later:
            del sys.modules[name]
        return importlib.import_module(name)


class _Later(types.ModuleType):
    """In the place of a module until an attribute of it is asked for."""

    _ready = False  # while it is being made, the import system asks for attributes

    def __init__(self, name: str, finder: _Finder) -> None:
        super().__init__(name)
        self._finder = finder

    def __getattr__(self, name: str) -> Any:
        # The latter is asked of all modules by whoever looks for a function's source.
        if not self._ready or name == "__file__":
            raise AttributeError(name)
        return getattr(self._finder.load(self), name)
