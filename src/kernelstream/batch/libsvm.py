"""LIBSVM, by way of scikit-learn."""

from __future__ import annotations

from sklearn.svm import SVC


class LibSVMClassifier(SVC):  # type: ignore[misc]
    """Scikit-learn's ``SVC``, which is LIBSVM, with the size of its model as ours have it.

    A kernel of :mod:`kernelstream.kernels` can be given as ``kernel``. More than two classes are
    learned in pairs.

    References
    ----------
    .. [1] C.-C. Chang, C.-J. Lin, "LIBSVM: a library for support vector machines", ACM Trans.
       Intelligent Systems and Technology 2 (2011).

    Examples
    --------
    >>> from kernelstream.batch import LibSVMClassifier
    >>> from kernelstream.kernels import Gaussian
    >>> from kernelstream.streams import make_multidist
    >>> X, y, X_test, y_test = make_multidist(500, n_test=500, random_state=1)
    >>> model = LibSVMClassifier(kernel=Gaussian(2.0)).fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.95), 15 < model.model_order_ < 500
    (True, True)
    """

    @property
    def model_order_(self) -> int:
        """Support vectors."""
        return len(self.support_)
