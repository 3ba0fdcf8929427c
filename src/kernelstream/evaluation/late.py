"""Labels that come late: each sample is predicted by a model that does not know the last ones."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from scipy.sparse import issparse

from kernelstream.core.threads import one_thread
from kernelstream.evaluation.learner import Learner, Predictions, rows_between
from kernelstream.models._experts import ExpertEstimator

#: Samples of a call at most: experts get copies of them.
MOST_ROWS = 1024
#: Columns beyond which sparse rows stay sparse.
_WIDEST = 4096


@one_thread()
def predict_then_learn_late(
    learner: Learner, X: Any, y: NDArray[Any], before: int, lag: int, unmeasured: int
) -> list[Predictions]:
    """Sample by sample; nothing for the first ones of a model that has learned nothing.

    The first ``before`` samples, at most ``lag``, were predicted earlier. After each of the others
    the one ``lag`` samples before it is learned, if there is one.
    """
    due = max(0, len(y) - lag)
    ahead = _for_single_rows(learner, rows_between(X, before, len(y)))
    late = _for_single_rows(learner, rows_between(X, 0, due))
    predicted = []
    for i in range(before, len(y)):
        new, old = slice(i - before, i - before + 1), slice(i - lag, i - lag + 1)
        if not learner.fresh:
            made = learner.predict(ahead[new], y[i : i + 1], unmeasured - (i - before))
            predicted.append(made)
        if i >= lag:
            learner.learn(late[old], y[old])
    return predicted


def _for_single_rows(learner: Learner, X: Any) -> Any:
    """Rows from which single ones are taken quickly.

    Experts make dense rows of sparse ones themselves, with the same bits: to do so one by one takes
    several times as long as all that they do with them.
    """
    narrow = issparse(X) and X.shape[1] <= _WIDEST
    return X.toarray() if narrow and isinstance(learner.model, ExpertEstimator) else X
