"""Tests of the data set loaders."""

import os

import numpy as np
import pytest

from kernelstream.streams import Dataset, StreamError, list_datasets, load_dataset, open_stream

SHAPES = {"a9a": (32561, 123), "elec2": (45312, 8)}


@pytest.fixture
def folder(tmp_path):
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6)
    np.savez(tmp_path / "plain.npz", X=X, y=y)
    np.savez(tmp_path / "split.npz", X_train=X[:4], y_train=y[:4], X_test=X[4:], y_test=y[4:])
    np.savez(tmp_path / "images.npz", images=X)
    return tmp_path


def test_without_a_split_all_is_train(folder):
    data = load_dataset("plain", folder)
    assert isinstance(data, Dataset)
    assert data.name == "plain"
    assert data.X_train.shape == (6, 2)
    assert data.y_train.shape == (6,)
    assert data.X_test is None
    assert data.y_test is None


def test_official_split_is_kept(folder):
    data = load_dataset("split", folder)
    assert data.X_train.shape == (4, 2)
    assert data.X_test.shape == (2, 2)
    assert np.array_equal(data.y_test, [4, 5])


def test_folder_from_the_environment(folder, monkeypatch):
    monkeypatch.setenv("KERNELSTREAM_DATA", str(folder))
    assert load_dataset("plain").X_train.shape == (6, 2)
    assert list_datasets() == ["plain", "split"]


def test_list_leaves_out_what_is_no_data_set(folder):
    assert list_datasets(folder) == ["plain", "split"]


@pytest.mark.parametrize("value", [None, ""])
def test_no_folder_names_the_variable(monkeypatch, value):
    monkeypatch.delenv("KERNELSTREAM_DATA", raising=False)
    if value is not None:
        monkeypatch.setenv("KERNELSTREAM_DATA", value)
    with pytest.raises(FileNotFoundError, match="KERNELSTREAM_DATA"):
        load_dataset("plain")


def test_unknown_name_lists_what_is_there(folder):
    with pytest.raises(FileNotFoundError, match=r"'nope'.*plain, split.*KERNELSTREAM_DATA"):
        load_dataset("nope", folder)


def test_missing_folder_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="there: none"):
        load_dataset("plain", tmp_path / "absent")


def test_other_content_is_named(folder):
    with pytest.raises(ValueError, match="but: images"):
        load_dataset("images", folder)


def test_pickled_objects_are_refused(tmp_path):
    np.savez(tmp_path / "bad.npz", X=np.array([{}], dtype=object), y=np.zeros(1))
    with pytest.raises(ValueError, match=r"bad\.npz is no \.npz file of plain arrays"):
        load_dataset("bad", tmp_path)


def test_damaged_files_are_named_and_not_listed(tmp_path):
    np.savez_compressed(tmp_path / "whole.npz", X=np.arange(300.0)[:, None], y=np.zeros(300))
    data = bytearray((tmp_path / "whole.npz").read_bytes())
    data[100:140] = bytes(40)  # inside the compressed X
    (tmp_path / "damaged.npz").write_bytes(data)
    (tmp_path / "short.npz").write_bytes(data[:200])
    assert list_datasets(tmp_path) == ["damaged", "whole"]  # its table of contents is intact
    for name in ("damaged", "short"):
        with pytest.raises(StreamError, match=rf"{name}\.npz is no \.npz file .* or damaged"):
            load_dataset(name, tmp_path)
        with pytest.raises(StreamError, match=rf"{name}\.npz is no \.npz file .* or damaged"):
            open_stream(tmp_path / f"{name}.npz")


@pytest.mark.skipif(
    not os.environ.get("KERNELSTREAM_DATA"), reason="KERNELSTREAM_DATA names no data folder"
)
@pytest.mark.parametrize("name", sorted(SHAPES))
def test_real_data(name):
    if name not in list_datasets():
        pytest.skip(f"{name} is not in the data folder")
    data = load_dataset(name)
    assert data.X_train.shape == SHAPES[name]
    assert len(data.y_train) == len(data.X_train)
