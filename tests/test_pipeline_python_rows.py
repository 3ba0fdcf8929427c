"""Rows as Python has them: dicts, frames, arrays."""

import numpy as np
import pytest

import kernelstream
from kernelstream import POLKClassifier
from kernelstream.pipeline import StreamModel
from tests.pipeline_rows import N


def python_rows(n=N, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    return {
        "x": np.where(random.random(n) < 0.1, np.nan, x),
        "colour": random.choice(["red", "green"], n).tolist(),
        "y": (x > 0.0).tolist(),
    }


def test_every_form_of_rows_gives_the_same_model_and_the_file_of_the_tool_takes_them(tmp_path):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = python_rows()
    frame = pd.DataFrame(columns)
    forms = [columns, frame, pl.from_pandas(frame), frame.to_dict("records")]
    made = []
    for rows_ in forms:
        model = StreamModel.for_rows(rows_, "y", POLKClassifier(random_state=0))
        made.append(model.learn(rows_))
    assert len({model.fingerprint() for model in made}) == 1
    one_by_one = StreamModel.for_rows(frame, "y", POLKClassifier(random_state=0))
    for row in forms[3]:
        one_by_one.learn_one(row)
    assert one_by_one.fingerprint() == made[0].fingerprint()

    frame.to_csv(tmp_path / "rows.csv", index=False)
    result = kernelstream.Run(str(tmp_path / "rows.csv"), "y", "polk").run()
    result.model.save(tmp_path / "m.ks")
    model = kernelstream.load(tmp_path / "m.ks")
    shuffled = frame[["colour", "x"]].assign(more=1)  # other order, one more, no target
    predicted = model.predict(shuffled)
    assert predicted.dtype == np.bool_
    assert predicted.tolist() == [model.predict_one(row) for row in shuffled.to_dict("records")]
    assert np.mean(predicted == frame["y"]) > 0.8
    learned = model.learn(frame).model.n_seen_
    assert learned == 2 * N
    with pytest.raises(ValueError, match="no column 'x', which the model looks at"):
        model.predict(frame[["colour"]])


def test_true_and_false_stay_true_and_false(tmp_path):
    columns = python_rows()
    columns["y"][3] = None
    model = StreamModel.for_rows(columns, "y", POLKClassifier(random_state=0))
    predicted, true = model.predict_then_learn(columns)
    assert [type(label) for label in true[:4].tolist()] == [bool, bool, bool, type(None)]
    assert predicted[0] is None
    assert set(predicted[1:].tolist()) == {True, False} == set(model.classes_.tolist())
    model.save(tmp_path / "m")
    again = kernelstream.load(tmp_path / "m")
    assert again.predict(columns).dtype == np.bool_
    numbers = {**columns, "y": [0, 1] * (N // 2)}  # the same classes, written as numbers
    assert again.learn(numbers).classes_.dtype == np.bool_
    assert model.learn({**numbers, "y": [2] * N}).classes_.tolist() == [0, 1, 2]


def test_features_without_names_are_arrays():
    X, y = kernelstream.make_multidist(300, random_state=0)
    model = StreamModel.for_rows((X, y), "target", POLKClassifier(random_state=0)).learn((X, y))
    assert model.predict(X).shape == (300,)
    with pytest.raises(ValueError, match="the features have no names"):
        model.predict({"a": 1.0})


def test_models_by_name_for_rows():
    columns = {**python_rows(60), "y": np.arange(60.0) + 0.5}
    assert type(StreamModel.for_rows(columns, "y").model).__name__ == "AutoRegressor"
    assert type(StreamModel.for_rows(columns, "x", "avm").model).__name__ == "AVMRegressor"
    for model, message in (("svm", "model must be .* one of auto"), ("rbp", "does not learn")):
        with pytest.raises(ValueError, match=message):
            StreamModel.for_rows(columns, "y", model)
    with pytest.raises(ValueError, match="no column 'z'; they have"):
        StreamModel.for_rows(columns, "z")


def test_methods_that_a_model_lacks_say_what_to_use():
    rows = {"x": np.arange(20.0), "y": ["a", "b"] * 10, "z": np.arange(20.0) / 7.0}
    classes = StreamModel.for_rows({"x": rows["x"], "y": rows["y"]}, "y", "krlst")
    numbers = StreamModel.for_rows({"x": rows["x"], "z": rows["z"]}, "z", "polk")
    with pytest.raises(AttributeError, match=r"KRLSTClassifier has no predict_interval.*_proba"):
        classes.predict_interval(rows)
    with pytest.raises(AttributeError, match=r"has no predict_interval.*'auto' or 'krlst'"):
        numbers.predict_interval(rows)
    with pytest.raises(AttributeError, match=r"has no predict_proba: use predict$"):
        numbers.predict_proba(rows)
    assert not hasattr(classes, "predict_interval")
    assert hasattr(classes, "predict_proba")
    assert StreamModel.predict_proba.__doc__
