"""Features of raw rows: preparation and extractor in one, in one file."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kernelstream import storage
from kernelstream._version import __version__
from kernelstream.features import OnlineKernelFeatures
from kernelstream.models._files import Saved
from kernelstream.models._stream import as_before_on_error
from kernelstream.parts import part_of, prefixed
from kernelstream.preparation import Preparation
from kernelstream.streams.batch import Batch

__all__ = ["StreamFeatures"]

_PREPARATION = "preparation_"
_EXTRACTOR = "extractor_"


class StreamFeatures(Saved):
    """Learns features from raw rows and gives them for raw rows.

    Parameters
    ----------
    extractor : OnlineKernelFeatures
        ``gamma=preparation.suggested_gamma`` suits it.
    preparation : Preparation

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.feature_stream import StreamFeatures
    >>> from kernelstream.features import OnlineKernelFeatures
    >>> from kernelstream.preparation import Preparation
    >>> from kernelstream.streams.batch import Batch
    >>> random = np.random.default_rng(0)
    >>> rows = Batch({"a": random.normal(size=500), "b": random.normal(size=500)},
    ...              lines=np.arange(500))
    >>> preparation = Preparation({"a": "number", "b": "number"})
    >>> stream = StreamFeatures(OnlineKernelFeatures(4, max_points=20, random_state=0), preparation)
    >>> stream.learn(rows).shape  # the fit error of each row before it was learned from
    (500,)
    >>> stream.transform(rows).shape
    (500, 4)
    """

    def __init__(self, extractor: OnlineKernelFeatures, preparation: Preparation) -> None:
        if not isinstance(extractor, OnlineKernelFeatures):
            raise ValueError(f"features cannot be learned with a {type(extractor).__name__}")
        if extractor.gamma == "scale":
            raise ValueError(
                "gamma='scale' depends on how the stream is cut: use preparation.suggested_gamma"
            )
        self.extractor = extractor
        self.preparation = preparation

    def admit(self, batch: Batch) -> Any:
        """The next rows of the stream, prepared; the preparation learns from them."""
        return self.preparation.transform(batch, learn=True)

    def learn(self, batch: Batch) -> NDArray[np.float64]:
        """Learn from the next rows; returns the fit error of each before it was learned from."""
        with as_before_on_error(self.preparation):
            return self.extractor.partial_fit_errors(self.admit(batch))

    def transform(self, batch: Batch) -> NDArray[np.float64]:
        """(n, r): the features of some rows, with the subspace as it is."""
        check_is_fitted(self.extractor)
        return self.extractor.transform(self.preparation.transform(batch))

    def fit_error(self, batch: Batch) -> NDArray[np.float64]:
        """(n,): the fit error of some rows, with the subspace as it is."""
        check_is_fitted(self.extractor)
        return self.extractor.inverse_fit_error(self.preparation.transform(batch))

    # ---- files ------------------------------------------------------------------------

    def _document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        preparation, prepared = self.preparation.to_document()
        extractor, arrays = self.extractor._document()
        header = {"version": __version__, "preparation": preparation, "extractor": extractor}
        return header, prefixed(_PREPARATION, prepared) | prefixed(_EXTRACTOR, arrays)

    @classmethod
    def _from_document(cls, document: storage.Document) -> Self:
        header, arrays = document.header, document.arrays
        prepared, extracted = part_of(_PREPARATION, arrays), part_of(_EXTRACTOR, arrays)
        preparation = Preparation.from_document(header["preparation"], prepared)
        extractor = OnlineKernelFeatures._from_document(
            storage.Document("OnlineKernelFeatures", header["extractor"], extracted)
        )
        if extractor.n_features_in_ != preparation.width:
            raise ValueError("the extractor's features are not those of the preparation")
        return cls(extractor, preparation)
