"""MLflow's pyfunc flavour, where MLflow is installed: the other tests do not need it."""

import subprocess
import sys

import numpy as np
import pytest

from kernelstream import KRLSTRegressor, StreamModel

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow warns of itself when it is imported

ROWS = {
    "x": np.linspace(-2.0, 2.0, 60),
    "city": np.array(["Bonn", "Rom", "Oslo"] * 20),
    "y": np.array(["up", "down", "up"] * 20),
}


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    found = pytest.importorskip("mlflow", reason="kernelstream[mlflow] is not installed")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/runs.db")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    found.set_tracking_uri((tmp_path / "runs").as_uri())
    return found


def frame():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"x": ROWS["x"], "city": ROWS["city"]})


def test_a_saved_model_is_served(mlflow, tmp_path):
    from kernelstream.compat.mlflow import save_model

    model = StreamModel.for_rows(ROWS, "y", "krlst").learn(ROWS)
    model.save(tmp_path / "model.ks")
    for place, given in (("one", model), ("two", tmp_path / "model.ks")):
        save_model(given, tmp_path / place)
        served = mlflow.pyfunc.load_model(str(tmp_path / place))
        assert served.predict(frame()).tolist() == model.predict(frame()).tolist()
        assert served.get_raw_model().fingerprint() == model.fingerprint()
    served.get_raw_model().learn(ROWS)  # it learns on
    assert "kernelstream[frames]==" in (tmp_path / "two" / "requirements.txt").read_text()


def test_a_logged_model_is_found_in_its_run(mlflow):
    from kernelstream.compat.mlflow import log_model

    X = ROWS["x"][:, None]
    model = KRLSTRegressor().partial_fit(X, np.sin(X[:, 0]))
    with mlflow.start_run():
        logged = log_model(model, "sine")
    served = mlflow.pyfunc.load_model(logged.model_uri)
    assert served.predict(X).tolist() == model.predict(X).tolist()


def test_other_methods_are_asked_for_by_name(tmp_path):
    from kernelstream.compat.mlflow import Served

    model = StreamModel.for_rows(ROWS, "y", "krlst").learn(ROWS)
    served = Served(model)
    found = served.predict(ROWS, {"method": "predict_proba"})
    assert found.tolist() == model.predict_proba(ROWS).tolist()
    for wrong in ("save", "novelties"):
        with pytest.raises(ValueError, match="a StreamModel has predict, predict_proba"):
            served.predict(ROWS, {"method": wrong})


def test_a_file_that_is_no_model_is_refused_before_it_is_logged(mlflow, tmp_path):
    from kernelstream.compat.mlflow import save_model
    from kernelstream.storage import ModelFileError

    (tmp_path / "rows.csv").write_text("x,y\n1,2\n")
    with pytest.raises(ModelFileError):
        save_model(tmp_path / "rows.csv", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_mlflow_the_error_names_the_extra(tmp_path):
    script = (
        "import sys; sys.modules['mlflow'] = None\n"
        "from kernelstream.compat.mlflow import save_model\n"
        "try: save_model('m.ks', 'out')\n"
        "except ImportError as error: print(error)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'kernelstream[mlflow]'" in ended.stdout
