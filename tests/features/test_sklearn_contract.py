"""The feature learners as scikit-learn and the libraries around it use them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelstream.features import OnlineKernelFeatures
from tests.features.tools import ESTIMATORS, small, stream

STOCHASTIC = "weight 2 is one step twice as long, not two steps: the sequence of steps differs"
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": STOCHASTIC,
    "check_sample_weight_equivalence_on_sparse_data": STOCHASTIC,
    "check_class_weight_classifiers": "its rows are so far apart that kernel values are 0: the few "
    "features of most of them are noise, whatever classes weigh",
}


@parametrize_with_checks(
    [estimator_class() for estimator_class in ESTIMATORS],
    expected_failed_checks=lambda estimator: (
        {} if isinstance(estimator, OnlineKernelFeatures) else EXPECTED_FAILURES
    ),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator_class", ESTIMATORS)
def test_parameters_survive_clone_and_set_params(estimator_class):
    model = small(estimator_class, censoring=("rate", 0.5), removal="recency", forgetting=0.9)
    assert clone(model).get_params() == model.get_params()
    assert estimator_class().set_params(**model.get_params()).get_params() == model.get_params()


def test_names_and_frames():
    X, _ = stream(OnlineKernelFeatures)
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(200) + 7)
    model = OnlineKernelFeatures(4, max_points=9).set_output(transform="pandas")
    Z = model.fit_transform(frame)
    assert list(Z.columns) == [f"onlinekernelfeatures{i}" for i in range(4)]
    assert list(Z.columns) == list(model.get_feature_names_out())
    assert list(Z.index) == list(frame.index)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[["b", "a", "c"]])


def test_pipeline_and_grid_search():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 2))
    y = (np.linalg.norm(X, axis=1) > 1.2).astype(int)
    pipeline = make_pipeline(
        StandardScaler(),
        OnlineKernelFeatures(8, max_points=24, solver="nonparametric"),
        SGDClassifier(random_state=0),
    )
    search = GridSearchCV(pipeline, {"onlinekernelfeatures__gamma": [1e-6, 0.5]}, cv=3).fit(X, y)
    assert search.best_params_ == {"onlinekernelfeatures__gamma": 0.5}
    assert search.score(X, y) > 0.85
