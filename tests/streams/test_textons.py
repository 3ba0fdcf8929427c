"""Images to histograms of textons."""

import numpy as np
import pytest

from kernelstream.streams import load_textures
from kernelstream.streams.errors import StreamError
from kernelstream.streams.textons import _histograms, filter_responses

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def folder(tmp_path):
    """Stripes across, stripes along, and noise; a file that is no image."""
    random = np.random.default_rng(0)
    place = np.arange(40)
    stripes = np.sin(place[:, None] * 1.3) + np.zeros((40, 40))
    pictures = {"a": stripes, "b": stripes.T, "c": random.normal(size=(40, 40))}
    for name, picture in pictures.items():
        grey = picture + 0.1 * random.normal(size=picture.shape)
        grey = 255.0 * (grey - grey.min()) / np.ptp(grey)
        Image.fromarray(grey.astype(np.uint8)).save(tmp_path / f"{name}.png")
    (tmp_path / "notes.txt").write_text("no image")
    return tmp_path


def load(folder, **given):
    return load_textures(folder, n_textons=8, patch=12, n_train=120, n_test=60, **given)


def test_histograms_tell_textures_apart(folder):
    data = load(folder)
    assert data.X_train.shape == (120, 8)
    assert data.X_test.shape == (60, 8)
    assert set(data.y_train) == {0, 1, 2}
    assert np.allclose(data.X_train.sum(axis=1), 1.0, atol=1e-5)
    means = np.stack([data.X_train[data.y_train == c].mean(axis=0) for c in range(3)])
    apart = ((data.X_test[:, None] - means) ** 2).sum(axis=-1)
    assert np.mean(apart.argmin(axis=1) == data.y_test) > 0.95


def test_the_seed_decides(folder):
    assert np.array_equal(load(folder).X_train, load(folder).X_train)
    assert not np.array_equal(load(folder).X_train, load(folder, random_state=1).X_train)


@pytest.mark.parametrize("patch", [4, 5])
def test_a_histogram_counts_the_pixels_of_its_patch(patch):
    random = np.random.default_rng(0)
    responses = random.normal(size=(9, 11, 3))
    centers = random.normal(size=(4, 3))
    found = _histograms(responses, centers, patch)
    assert found.shape == (10 - patch, 12 - patch, 4)
    nearest = ((responses[:, :, None] - centers) ** 2).sum(axis=-1).argmin(axis=-1)
    for i in range(10 - patch):
        for j in range(12 - patch):
            counts = np.bincount(nearest[i : i + patch, j : j + patch].ravel(), minlength=4)
            assert np.allclose(found[i, j], counts / patch**2, atol=1e-6)


def test_the_bank_has_48_filters_and_all_but_the_blurs_ignore_brightness():
    image = np.random.default_rng(0).normal(size=(30, 30))
    responses, brighter = filter_responses(image), filter_responses(image + 5.0)
    assert responses.shape == (30, 30, 48)
    same = np.abs(responses - brighter).max(axis=(0, 1)) < 0.05  # cut filters have a mean
    assert same.sum() == 44
    assert not same[-4:].any()


def test_what_cannot_be_done_is_refused(folder, tmp_path):
    with pytest.raises(StreamError, match="the images have"):
        load_textures(folder, n_textons=8, patch=12, n_train=10_000, n_test=1)
    with pytest.raises(StreamError, match="holds no patch of 60 x 60"):
        load_textures(folder, patch=60)
    with pytest.raises(StreamError, match="textons are wanted"):
        load_textures(folder, n_textons=10_000, patch=12, n_train=5, n_test=5)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(StreamError, match="two at least"):
        load_textures(empty)
    Image.fromarray(np.zeros((40, 40), np.uint8)).save(folder / "d.png")
    with pytest.raises(StreamError, match="one grey"):
        load(folder)
