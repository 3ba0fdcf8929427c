"""Records that compiled code and plain Python read alike."""

import numpy as np
import pytest

from kernelstream.core.feature_state import FEATURE_SETTINGS
from kernelstream.core.settings import SETTINGS, make_settings
from kernelstream.core.state import STATUS


@pytest.mark.parametrize("record", [SETTINGS, FEATURE_SETTINGS, STATUS])
def test_no_number_is_called_as_something_that_every_record_has(record):
    """Without the compiler ``record.shape`` would be NumPy's."""
    assert not [name for name in record.names if hasattr(np.record, name)]


def test_numbers_that_are_not_named_are_zero():
    settings = make_settings(most=7, decay=0.5)[0]
    assert (settings.most, settings.decay) == (7, 0.5)
    others = [name for name in SETTINGS.names if name not in ("most", "decay")]
    assert not any(settings[name] for name in others)
    with pytest.raises(ValueError, match="wrong"):
        make_settings(wrong=1)
