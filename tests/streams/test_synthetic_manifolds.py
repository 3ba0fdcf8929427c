"""The spheres and the ellipsoid of OK-FEB."""

import numpy as np
import pytest

from kernelstream.streams import make_spheres, make_turning_ellipsoid
from kernelstream.streams.synthetic_manifolds import spheres_blocks, turning_ellipsoid_blocks


def test_spheres_have_the_radii_of_the_paper():
    X, y = make_spheres(4000, noise=0.0, random_state=0)
    radius = np.linalg.norm(X, axis=1)
    assert np.allclose(radius[y == 1], 1.0)
    assert np.allclose(radius[y == -1], 2.0)
    assert abs(np.mean(y)) < 0.05
    assert np.abs(X.mean(axis=0)).max() < 0.1
    # Uniform on a sphere: each coordinate is uniform (Archimedes).
    assert np.allclose(np.quantile(X[y == 1], [0.25, 0.75], axis=0), [[-0.5], [0.5]], atol=0.06)


def test_noise_of_the_spheres():
    quiet, _ = make_spheres(4000, noise=0.0, random_state=0)
    noisy, _ = make_spheres(4000, noise=0.3, random_state=0)
    assert np.std(noisy - quiet) == pytest.approx(0.3, rel=0.05)


def test_ellipsoid_turns():
    X, y = make_turning_ellipsoid(3000, random_state=0)
    first, second = X * [1 / 3, 1, 1], X * [1, 1 / 3, 1]
    for part, shape in ((slice(0, 1000), first), (slice(1000, 2000), second)):
        assert np.allclose(np.linalg.norm(shape[part], axis=1), 1.0)
    assert np.allclose(np.linalg.norm(first[2000:], axis=1), 1.0)
    assert (y == np.repeat([0, 1, 0], 1000)).all()


@pytest.mark.parametrize(
    ("make", "blocks"),
    [(make_spheres, spheres_blocks), (make_turning_ellipsoid, turning_ellipsoid_blocks)],
)
class TestBoth:
    def test_blocks_are_the_stream(self, make, blocks, monkeypatch):
        monkeypatch.setattr("kernelstream.streams.synthetic.BLOCK_SAMPLES", 700)
        whole = make(2500, random_state=3)
        parts = list(blocks(2500, random_state=3))
        assert [len(y) for _, y in parts] == [700, 700, 700, 400]
        for column, expected in enumerate(whole):
            assert np.array_equal(np.concatenate([part[column] for part in parts]), expected)

    def test_longer_begins_with_the_shorter(self, make, blocks):
        for short, long in zip(make(50, random_state=1), make(90, random_state=1), strict=True):
            assert np.array_equal(short, long[:50])

    def test_errors(self, make, blocks):
        with pytest.raises(ValueError, match="n_samples must be an integer of at least 1"):
            make(0)
        with pytest.raises(ValueError, match="noise must be a finite number"):
            make(10, noise=-1.0)
