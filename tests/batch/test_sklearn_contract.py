"""scikit-learn's checks of the batch references."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelstream.batch import ImportVectorMachine, KernelLogisticRegression, LibSVMClassifier

ROUNDED = "of SVC itself: LIBSVM stops at a tolerance, weights and repeated rows stop elsewhere"
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": ROUNDED,
    "check_sample_weight_equivalence_on_sparse_data": ROUNDED,
}


@parametrize_with_checks(
    [
        KernelLogisticRegression(alpha=1e-2, max_iter=100),
        ImportVectorMachine(alpha=1e-2, max_points=5, random_state=0),
        LibSVMClassifier(),
    ],
    expected_failed_checks=lambda estimator: (
        EXPECTED_FAILURES if isinstance(estimator, LibSVMClassifier) else {}
    ),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
