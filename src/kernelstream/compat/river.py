"""River: models of this package as classifiers, regressors and transformers of River."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from kernelstream import registry
from kernelstream.compat._columns import Columns
from kernelstream.features import OnlineKernelFeatures
from kernelstream.models._classifier import StreamClassifier
from kernelstream.models._regressor import StreamRegressor
from kernelstream.models._widening import add_features, can_widen, most_features
from kernelstream.rows import as_finite_rows
from kernelstream.streams.columns import nearest

try:
    from river import base
except ImportError as error:
    raise ImportError(
        "kernelstream.compat.river needs river: pip install 'kernelstream[river]'"
    ) from error

__all__ = ["RiverClassifier", "RiverKernelFeatures", "RiverRegressor"]

Features = Mapping[Hashable, Any]


class _Wrapped(base.Estimator):  # type: ignore[misc]
    """A model of this package behind features by name."""

    model: Any

    def _begin(self) -> None:
        self._learner = self._new_learner()
        self._columns = Columns(most_features(self._learner))

    def _new_learner(self) -> Any:
        raise NotImplementedError

    @property
    def _taught(self) -> bool:
        return hasattr(self._learner, "_state")

    @property
    def _raw_memory_usage(self) -> int:
        """Bytes of what was learned. River would follow references into compiled code."""
        latest = sum(row.nbytes for row, _ in getattr(self, "_latest", ()))
        held = self._learner.nbytes_ if self._taught else 0
        return int(held + latest + self._columns.nbytes)

    def _next_row(self, x: Features) -> NDArray[np.float64]:
        """The row to learn from; the model gets more features where there are new ones."""
        row = self._columns.learn(x)
        self._widen(len(row))
        return row

    def _widen(self, features: int) -> None:
        if self._taught and features > self._learner.n_features_in_:
            if can_widen(self._learner):
                add_features(self._learner, features - self._learner.n_features_in_)
            else:
                self._replace_learner()

    def _replace_learner(self) -> None:
        """A new model, for the columns that there are now."""
        self._learner = self._new_learner()

    def _rows(self, X: Any) -> NDArray[np.float64]:
        """(n, p): rows of a data frame to predict."""
        rows = [self._columns.row(x) for x in X.to_dict("records")]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self._columns))

    def _in_stretches(self, X: Any, learn: Callable[[NDArray[Any], slice], None]) -> None:
        """Rows of a data frame to learn from, as long as no new features come, together."""
        rows: list[NDArray[np.float64]] = []
        done = 0
        for x in X.to_dict("records"):
            row = self._columns.learn(x)
            if rows and len(row) > len(rows[0]):
                learn(np.array(rows), slice(done, done + len(rows)))
                done, rows = done + len(rows), []
            self._widen(len(row))
            rows.append(row)
        if rows:
            learn(np.array(rows), slice(done, done + len(rows)))


class _Supervised(_Wrapped):
    """What classifiers and regressors share: targets, and what is done about drift."""

    _kind: Any  # the base class of estimators that it takes
    _of_method: Callable[[Any], Any]  # the estimator of a method
    _at_first: Any  # what is predicted before the first sample

    def __init__(
        self, model: Any = None, drift_detector: Any = None, remembered: int = 200
    ) -> None:
        self.model = model
        self.drift_detector = drift_detector
        self.remembered = remembered
        self._begin()

    def _begin(self) -> None:
        super()._begin()
        #: How often the drift detector made it begin again.
        self.n_drifts = 0
        self._detector = None if self.drift_detector is None else self.drift_detector.clone()
        self._latest: deque[tuple[NDArray[np.float64], Any]] = deque(maxlen=self.remembered)

    def _new_learner(self) -> Any:
        model = registry.DEFAULT if self.model is None else self.model
        if isinstance(model, str):
            known = registry.models()
            if model not in known or type(self)._of_method(known[model]) is None:
                able = [name for name in known if type(self)._of_method(known[name])]
                near = nearest(model, able)
                raise ValueError(
                    f"there is no model {model!r}"
                    + (f", did you mean {near!r}?" if near else "")
                    + f" It must be an estimator or one of {', '.join(able)}"
                )
            return type(self)._of_method(known[model])(random_state=0)
        if not isinstance(model, self._kind):
            raise ValueError(
                f"model is a {type(model).__name__}, not fit for {type(self).__name__}"
            )
        return clone(model)

    def _error(self, predicted: Any, y: Any) -> float:
        raise NotImplementedError

    def predict_one(self, x: Features, **options: Any) -> Any:
        """The most likely class, or the number; before the first sample None, or 0."""
        return self._learner.predict_one(self._columns.row(x)) if self._taught else self._at_first

    def learn_one(self, x: Features, y: Any) -> None:
        """Learn from a sample."""
        row = self._next_row(x)
        if self._detector is not None and self._taught:
            self._detector.update(self._error(self._learner.predict_one(row), y))
            if self._detector.drift_detected:
                self.n_drifts += 1
                self._replace_learner()
        self._learner.learn_one(row, y)
        if self._remembers:
            self._latest.append((row, y))

    @property
    def _remembers(self) -> bool:
        """Whether a new model may have to begin with the latest samples."""
        return self._detector is not None or not can_widen(self._learner)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from the rows of a data frame, in order."""
        targets = list(y)
        if not self._taught and targets:  # then it is known what the model can do
            self.learn_one(X.iloc[0].to_dict(), targets[0])
            X, targets = X.iloc[1:], targets[1:]
        if self._taught and self._remembers:  # one by one
            for x, target in zip(X.to_dict("records"), targets, strict=True):
                self.learn_one(x, target)
            return
        self._in_stretches(X, lambda rows, part: self._learner.partial_fit(rows, targets[part]))

    def _replace_learner(self) -> None:
        """A new model, for the stream as it is now: it begins with the latest samples."""
        super()._replace_learner()
        for row, y in self._latest:
            self._learner.learn_one(np.pad(row, (0, len(self._columns) - len(row))), y)

    def _values(self, rows: NDArray[np.float64]) -> Any:
        """What the function says of the next rows of the stream."""
        found = as_finite_rows(rows)
        self._learner._check_range(found)
        return self._learner._values_before(found)


class RiverClassifier(_Supervised, base.MiniBatchClassifier):  # type: ignore[misc]
    """A classifier of this package for River: pipelines, metrics, ``progressive_val_score``.

    Features are kept by name. New ones may come at any time and are added to what the model has
    learned, as if they had been 0 before (models that cannot be widened, random features and KRLS
    for example, begin again with the latest samples); a number that is missing counts as the mean
    of those so far. Texts are taken as they are, each value as a feature of its own. Classes need
    not be known beforehand, and come back as they are.

    There are at most 512 columns for the automatic model and KRLS-T, 4096 for others. Features
    that come when all but 64 are taken share these 64, by hash, and so do the values of a text that
    has taken half of them; a warning says so once.

    Predictions are those of the next sample of the stream: with the same samples in the same order
    metrics are those of :func:`kernelstream.evaluation.prequential`.

    Parameters
    ----------
    model : estimator or str, optional
        A classifier of this package, which is copied, or the name of a method; by default the
        automatic model, which needs no scaling. Others expect numbers in units: put River's
        ``StandardScaler`` before them.
    drift_detector : drift detector of River, optional
        Watches the mistakes (0 or 1) of predictions made before each sample; where it detects
        drift, a new model takes over, which begins with the latest samples.
    remembered : int, default=200
        How many samples a new model begins with.

    Attributes
    ----------
    n_drifts : int
        How often a new model took over.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from kernelstream.compat.river import RiverClassifier
    >>> model = RiverClassifier("krlst")
    >>> stream = datasets.Phishing().take(500)
    >>> score = evaluate.progressive_val_score(stream, model, metrics.Accuracy())
    >>> score.get() > 0.8
    True
    """

    _kind = StreamClassifier
    _of_method = staticmethod(lambda method: method.classifier)
    _at_first = None

    @property
    def _multiclass(self) -> bool:
        return True

    def _error(self, predicted: Any, y: Any) -> float:
        return float(predicted != y)

    def predict_proba_one(self, x: Features, **options: Any) -> dict[Any, float]:
        """The probability of each class met so far."""
        if not self._taught:
            return {}
        values = self._values(self._columns.row(x)[None])
        found = self._learner._probabilities(values)[0].tolist()
        return dict(zip(self._learner.classes_.tolist(), found, strict=True))

    def predict_many(self, X: Any) -> Any:
        """The most likely class of each row of a data frame."""
        import pandas as pd

        if not self._taught:
            return pd.Series(dtype=object)
        labels = self._learner._labels(self._values(self._rows(X)), self._learner.classes_)
        return pd.Series(labels.tolist(), index=X.index)

    def predict_proba_many(self, X: Any) -> Any:
        """The probability of each class, a column each, for the rows of a data frame."""
        import pandas as pd

        if not self._taught:
            return pd.DataFrame(index=X.index)
        found = self._learner._probabilities(self._values(self._rows(X)))
        return pd.DataFrame(found, columns=self._learner.classes_.tolist(), index=X.index)


class RiverRegressor(_Supervised, base.MiniBatchRegressor):  # type: ignore[misc]
    """A regressor of this package for River; features as for :class:`RiverClassifier`.

    Parameters
    ----------
    model : estimator or str, optional
        A regressor of this package, which is copied, or the name of a method; by default the
        automatic model, which takes features and targets in any units. Others, but for KRLS-T,
        expect both in units: put River's ``StandardScaler`` before them, and a
        ``TargetStandardScaler`` around them.
    drift_detector : drift detector of River, optional
        Watches the absolute errors of predictions made before each sample; where it detects drift,
        a new model takes over, which begins with the latest samples.
    remembered : int, default=200
        How many samples a new model begins with.

    Attributes
    ----------
    n_drifts : int
        How often a new model took over.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from kernelstream.compat.river import RiverRegressor
    >>> stream = datasets.TrumpApproval().take(500)
    >>> score = evaluate.progressive_val_score(stream, RiverRegressor("krlst"), metrics.MAE())
    >>> score.get() < 1.0
    True
    """

    _kind = StreamRegressor
    _of_method = staticmethod(lambda method: method.regressor)
    _at_first = 0.0

    def _error(self, predicted: Any, y: Any) -> float:
        return abs(float(predicted) - float(y))

    def predict_many(self, X: Any) -> Any:
        """The predicted number for each row of a data frame."""
        import pandas as pd

        if not self._taught:
            return pd.Series(0.0, index=X.index)
        return pd.Series(self._values(self._rows(X))[:, 0], index=X.index)


class RiverKernelFeatures(_Wrapped, base.MiniBatchTransformer):  # type: ignore[misc]
    """Kernel features learned from a stream, as a transformer of River.

    What comes out are numbers whose products approximate a kernel: put a linear model behind it.
    Features go in as for :class:`RiverClassifier`.

    Parameters
    ----------
    model : OnlineKernelFeatures, optional
        Is copied.

    Examples
    --------
    >>> from river import datasets, evaluate, linear_model, metrics, optim, preprocessing
    >>> from kernelstream.compat.river import RiverKernelFeatures
    >>> model = preprocessing.StandardScaler() | RiverKernelFeatures()
    >>> model |= linear_model.LogisticRegression(optim.SGD(0.5))  # the features are small
    >>> stream = datasets.Phishing().take(500)
    >>> score = evaluate.progressive_val_score(stream, model, metrics.Accuracy())
    >>> score.get() > 0.8
    True
    """

    def __init__(self, model: Any = None) -> None:
        self.model = model
        self._begin()

    def _new_learner(self) -> Any:
        if self.model is None:
            return OnlineKernelFeatures(random_state=0)
        if not isinstance(self.model, OnlineKernelFeatures):
            raise ValueError(f"model is a {type(self.model).__name__}, not OnlineKernelFeatures")
        return clone(self.model)

    def learn_one(self, x: Features) -> None:
        """Learn from a sample."""
        self._learner.partial_fit(self._next_row(x)[None])

    def learn_many(self, X: Any) -> None:
        """Learn from the rows of a data frame, in order."""
        self._in_stretches(X, lambda rows, part: self._learner.partial_fit(rows))

    def transform_one(self, x: Features) -> dict[Hashable, Any]:
        """The features; none before the first sample."""
        if not self._taught:
            return {}
        found = self._learner.transform(self._columns.row(x)[None])[0].tolist()
        return dict(zip(self._names(len(found)), found, strict=True))

    def transform_many(self, X: Any) -> Any:
        """The features of each row of a data frame."""
        import pandas as pd

        if not self._taught:
            return pd.DataFrame(index=X.index)
        found = self._learner.transform(self._rows(X))
        return pd.DataFrame(found, columns=self._names(found.shape[1]), index=X.index)

    @staticmethod
    def _names(count: int) -> list[str]:
        return [f"kernel_{place}" for place in range(count)]
