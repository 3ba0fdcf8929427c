"""Checks that refuse bad input before anything is learned from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from kernelstream.core.kernel import Rows, first_bad_entry, self_value
from kernelstream.core.threads import one_thread
from kernelstream.kernels import Kernel
from kernelstream.limits import LARGEST_ENTRY
from kernelstream.rows import as_rows, check_columns, count_rows, dense_rows, plain_array

#: Larger values k(x, x) are refused.
LARGEST_SELF_KERNEL = 1e100

#: What labels may be in a file: texts, truth values, numbers. NumPy understands far more words,
#: some of them as code to be parsed.
LABEL_DTYPES = {"U", *(np.dtype(order + kind).str for order in "<>" for kind in (
    "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8",
))}  # fmt: skip


def check_rows(estimator: Any, X: Any, *, new: bool = False) -> Rows:
    """X as samples for the compiled loops: all entries finite, and the width as before.

    A ``new`` estimator has no width yet: see :func:`note_features`.
    """
    if not new and _is_plain(X) and not hasattr(estimator, "feature_names_in_"):
        # What all other checks come to for such an array, at a fraction of their time.
        if X.shape[1] != estimator.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
                f"{estimator.n_features_in_} features as input."
            )
        if _is_in_range(X):
            return dense_rows(plain_array(X, np.float64))
    _refuse_masked(X, "X")
    if getattr(getattr(X, "dtype", None), "kind", "") in ("U", "S"):
        raise ValueError("X holds text: convert it to numbers")
    if not new and _is_plain_sparse(X, estimator):
        rows = as_rows(X)
        if first_bad_entry(rows, LARGEST_ENTRY)[0] < 0:
            return rows
    check_columns(X)
    array = check_array(
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        order="C",
        ensure_all_finite=False,
        estimator=estimator,
        input_name="X",
    )
    if not new:
        validate_data(estimator, X, reset=False, skip_check_array=True)
    rows = as_rows(array)
    row, column = -1, -1
    if rows.sparse or not _is_in_range(rows.dense):
        row, column = first_bad_entry(rows, LARGEST_ENTRY)
    if row >= 0:
        raise ValueError(_bad_entry_message(array, row, column, getattr(X, "columns", None)))
    return rows


def _is_in_range(X: NDArray[Any]) -> bool:
    """Whether all entries are certainly finite and small enough; many large ones may not seem so.

    BLAS shares longer vectors among threads, which wait for each other on a busy machine.
    """
    with one_thread(X.size > 10_000):
        return float(np.vdot(X, X)) < LARGEST_ENTRY**2


def _refuse_masked(array: Any, name: str) -> None:
    if isinstance(array, np.ma.MaskedArray):
        raise ValueError(f"{name} is a masked array: fill it in, or drop the masked rows")
    _refuse_dates(array, name)


def _refuse_dates(array: Any, name: str) -> None:
    if getattr(getattr(array, "dtype", None), "kind", "") in ("m", "M"):
        raise ValueError(f"{name} holds dates or durations: convert them to numbers")


def _holds_text(array: NDArray[Any]) -> bool:
    """Texts, of which NumPy makes numbers if they are numerals."""
    if array.dtype.kind == "O":
        return any(isinstance(value, str | bytes) for value in array.ravel())
    return array.dtype.kind in "US"


def _is_plain_sparse(X: Any, estimator: Any) -> bool:
    """Sparse rows as a Preparation makes them: scikit-learn's checks would find nothing."""
    return (
        type(X) is csr_array
        and X.dtype == np.float64
        and X.shape[0] > 0
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
    )


def _is_plain(X: Any) -> bool:
    return type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.size > 0


def note_features(estimator: Any, X: Any) -> None:
    """Remember the width and the names of the features."""
    validate_data(estimator, X, reset=True, skip_check_array=True)


def _bad_entry_message(array: Any, row: int, column: int, names: Any) -> str:
    value = float(array[row, column])
    name = f" ({str(names[column])!r})" if names is not None else ""
    place = f"at row {row}, column {column}{name}"
    if np.isnan(value):
        return (
            f"Input X contains NaN {place}. Remove such rows or fill them in, for example "
            "with sklearn.impute.SimpleImputer."
        )
    if np.isinf(value):
        return f"Input X contains infinity {place}. Remove such rows or fill them in."
    return (
        f"Input X contains a value too large, {value:.3g} {place}: at most {LARGEST_ENTRY:.0e} "
        "is allowed. Scale the data, for example with sklearn.preprocessing.StandardScaler."
    )


def check_samples(model: Any, X: Any) -> Rows:
    """Samples for a model that has learned, their kernel values in range."""
    rows = check_rows(model, X)
    check_kernel_range(model.kernel_, rows)
    return rows


def check_kernel_range(kernel: Kernel, rows: Rows) -> None:
    """Refuse samples whose kernel value with themselves would overflow the arithmetic."""
    if kernel.unit or not count_rows(rows):
        return
    if rows.sparse:
        squares = np.add.reduceat(np.append(rows.data**2, 0.0), rows.indptr[:-1])
        squares[np.diff(rows.indptr) == 0] = 0.0
    else:
        squares = np.einsum("ij,ij->i", rows.dense, rows.dense)
    row = int(np.argmax(squares))
    with np.errstate(over="ignore"):
        value = self_value(kernel.program, squares[row])
    if not value <= LARGEST_SELF_KERNEL:
        raise ValueError(
            f"Input X is too large for {kernel!r}: k(x, x) = {value:.3g} at row {row}. Scale "
            "the data, for example with sklearn.preprocessing.StandardScaler."
        )


def check_labels(y: Any, n: int, name: str = "y") -> NDArray[Any]:
    """Class labels, 1-D, one per sample."""
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "iubU":
        _check_length(y, n)
        return y
    _refuse_masked(y, name)
    labels = column_or_1d(y, warn=True)
    _check_length(labels, n)
    if labels.dtype.kind == "f":
        labels = labels.astype(np.float64)  # also longer ones, which a file could not hold
    if labels.dtype.kind in "fc" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise ValueError(f"Input {name} contains {labels[row]} at row {row}: not a class label.")
    if labels.dtype.kind == "O":
        bad = [i for i, label in enumerate(labels) if label is None or label != label]
        if bad:
            raise ValueError(
                f"Input {name} contains {labels[bad[0]]} at row {bad[0]}: not a label."
            )
        texts = sum(isinstance(label, str) for label in labels)
        if texts not in (0, len(labels)):
            raise ValueError(f"Input {name} mixes text with other labels: convert them to one type")
        cut = [i for i, label in enumerate(labels) if isinstance(label, str) and "\0" in label]
        if cut:  # NumPy drops it from the end of a text: two classes could become one
            raise ValueError(f"Input {name} contains a NUL character at row {cut[0]}: not a label.")
        labels = np.array(labels.tolist())
    check_classification_targets(labels)
    if labels.dtype.kind not in "biufU":
        raise ValueError(f"{name} must hold numbers or strings as labels, got {labels.dtype}")
    return labels


def check_numbers(y: Any, n: int, several: bool = False) -> NDArray[np.float64]:
    """Regression targets, one finite number per sample; or ``several`` of them, 2-D."""
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype == np.float64 and _is_in_range(y):
        _check_length(y, n)
        return plain_array(y, np.float64)
    if issparse(y):
        raise ValueError("y must be dense")
    _refuse_masked(y, "y")
    shape = np.asarray(y).shape  # np.shape asks objects that are no arrays to compute it
    if len(shape) == 2 and shape[1] > 1:
        if not several:
            raise ValueError(
                f"y should be a 1d array, got an array of shape {shape} instead: this model learns "
                "one number per sample. Several numbers are learned by most others, "
                "POLKRegressor among them, or by one model each (scikit-learn's "
                "MultiOutputRegressor)"
            )
        targets = np.asarray(y)
    else:
        targets = column_or_1d(y, warn=True)
    _refuse_dates(targets, "y")
    if targets.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers")
    try:
        if _holds_text(targets):
            raise ValueError
        targets = plain_array(targets, np.float64)
    except (TypeError, ValueError):
        raise ValueError("y must hold numbers; for class labels use a classifier") from None
    _check_length(targets, n)
    bad = np.argwhere(~(np.abs(targets) <= LARGEST_ENTRY))
    if len(bad):
        value = targets[tuple(bad[0])]
        what = "NaN" if np.isnan(value) else "infinity" if np.isinf(value) else f"{value:.3g}"
        raise ValueError(
            f"Input y contains {what} at row {bad[0, 0]}; finite values up to {LARGEST_ENTRY:.0e} "
            "are allowed."
        )
    return targets


def check_sample_weight(
    sample_weight: Any, n: int, some: bool = False
) -> NDArray[np.float64] | None:
    """Weights per sample, finite and not negative, ``some`` not zero; None if all are 1."""
    if sample_weight is None:
        return None
    _refuse_masked(sample_weight, "sample_weight")
    given = np.asarray(sample_weight)
    _refuse_dates(given, "sample_weight")
    if _holds_text(given):
        raise ValueError("sample_weight holds text: convert it to numbers")
    if given.dtype.kind == "c":
        raise ValueError("sample_weight must hold real numbers")
    try:
        weights = plain_array(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("sample_weight must hold numbers") from None
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n,)}!")
    bad = np.flatnonzero(~((weights >= 0.0) & (weights <= LARGEST_ENTRY)))
    if len(bad):
        raise ValueError(
            f"sample_weight must hold numbers from 0 to {LARGEST_ENTRY:.0e}, got "
            f"{weights[bad[0]]} at row {bad[0]}"
        )
    if some and not weights.any():
        raise ValueError("sample_weight is zero everywhere: there is nothing to learn from")
    return weights


def _check_length(y: NDArray[Any], n: int) -> None:
    if len(y) != n:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: [{n}, {len(y)}]"
        )
