"""Machine code on the disk belongs to the sources it was made of."""

import pickle

import pytest

from kernelstream.core import jit
from kernelstream.core.jit import INTERPRETED, compiled


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_cached_code_of_other_sources_is_not_used(tmp_path, monkeypatch):
    """As after an upgrade, or while a process that began before still writes its own."""
    monkeypatch.setattr(jit.numba.config, "CACHE_DIR", str(tmp_path))

    def compiled_before(sources):
        monkeypatch.setattr(jit, "_SOURCES", sources)

        @compiled
        def double(x):
            return 2 * x

        assert double(3) == 6
        return sum(double.stats.cache_hits.values()) == 1

    assert not compiled_before("old")
    assert compiled_before("old")
    assert not compiled_before("new")  # the same file and function, another callee
    assert compiled_before("new")
    assert not compiled_before("old")


@pytest.mark.skipif(jit.INTERPRETED, reason="nothing is cached")
def test_an_index_that_names_classes_of_another_version_is_empty(tmp_path, monkeypatch):
    monkeypatch.setattr(jit.numba.config, "CACHE_DIR", str(tmp_path))
    function = jit.compiled(_double)
    function(1.0)
    (index,) = tmp_path.rglob("*.nbi")
    version = pickle.dumps(jit.numba.__version__)
    index.write_bytes(version + b"ckernelstream.core.jit\nNoSuchClass\n.")
    again = jit.compiled(_double)
    assert again(2.0) == 4.0


def _double(x):
    return 2.0 * x
