"""Textures as histograms of textons: the data set ``brodatz`` of the POLK paper, from images."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.streams.datasets import Dataset
from kernelstream.streams.errors import StreamError

#: Of Leung and Malik's filters: deviations of the oriented ones, which are three times as long as
#: wide, and of the round ones.
_ORIENTED, _ANGLES, _ROUND = (1.0, 2.0**0.5, 2.0), 6, (1.0, 2.0**0.5, 2.0, 2.0 * 2.0**0.5)
_SUFFIXES = (".png", ".tif", ".tiff", ".gif", ".jpg", ".jpeg", ".bmp", ".pgm")


def load_textures(
    folder: str | os.PathLike[str],
    *,
    n_textons: int = 256,
    patch: int = 24,
    n_train: int = 10_000,
    n_test: int = 5_000,
    random_state: int = 0,
) -> Dataset:
    """Patches of texture images as histograms of textons, as the POLK paper makes ``brodatz``.

    The steps (Koppel et al., JMLR 2019, Section 5.2; textons: Leung and Malik, ICCV 1999):

    1. Each image, in grey and with mean 0 and deviation 1, goes through a bank of 48 filters: first
       and second derivatives of long Gaussians at three scales and six angles, eight Laplacians of
       Gaussians, four Gaussians. A pixel has 48 responses.
    2. k-means over responses of pixels drawn from all images: the centers are the textons.
    3. A pixel belongs to the nearest texton. The features of a patch are the shares of its pixels
       that belong to each texton, its label is the number of its image.
    4. Overlapping patches are drawn at random, first those to learn from, then those for the test.

    The paper took 13 images of Brodatz (1966) and does not say which, nor the filters; nothing is
    downloaded here.

    Parameters
    ----------
    folder : path
        Holds the images, one class each, in the order of their names.
    n_textons : int, default=256
        Features.
    patch : int, default=24
        Pixels along a side.
    n_train, n_test : int, default=10000 and 5000
        Patches drawn, no patch twice.
    random_state : int, default=0

    Returns
    -------
    Dataset
        Named ``textures``; labels count the images from 0.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from PIL import Image
    >>> from kernelstream.streams import load_textures
    >>> noise = np.random.default_rng(0).integers(0, 256, (40, 40)).astype(np.uint8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.fromarray(noise).save(f"{folder}/noise.png")
    ...     Image.fromarray(np.sort(noise)).save(f"{folder}/slope.png")
    ...     data = load_textures(folder, n_textons=5, patch=8, n_train=30, n_test=20)
    >>> data.X_train.shape, set(data.y_train.tolist())
    ((30, 5), {0, 1})
    """
    images = [_grey(path) for path in _image_files(folder)]
    small = [image.shape for image in images if min(image.shape) < patch]
    if small:
        raise StreamError(f"an image of {small[0]} pixels holds no patch of {patch} x {patch}")
    random = np.random.default_rng(random_state)
    responses = [filter_responses(image) for image in images]
    centers = _textons(responses, n_textons, random)
    shares = [_histograms(found, centers, patch) for found in responses]
    sizes = [part.shape[0] * part.shape[1] for part in shares]
    if n_train + n_test > sum(sizes):
        raise StreamError(
            f"{n_train} + {n_test} patches are wanted, the images have {sum(sizes)}: ask for fewer"
        )
    drawn = random.choice(sum(sizes), n_train + n_test, replace=False)
    ends = np.cumsum(sizes)
    labels = np.searchsorted(ends, drawn, side="right")
    X = np.empty((len(drawn), len(centers)))
    for label, part in enumerate(shares):
        mine = labels == label
        X[mine] = part.reshape(-1, len(centers))[drawn[mine] - (ends[label] - sizes[label])]
    return Dataset("textures", X[:n_train], labels[:n_train], X[n_train:], labels[n_train:])


def filter_responses(image: NDArray[np.float64]) -> NDArray[np.float64]:
    """(height, width, 48): what Leung and Malik's filters say of each pixel."""
    from scipy.ndimage import gaussian_filter  # here, because most runs need no images

    found = []
    for sigma in _ORIENTED:
        for angle in np.arange(_ANGLES) * np.pi / _ANGLES:
            for order in (1, 2):
                found.append(_oriented(image, sigma, angle, order))
    for sigma in _ROUND:
        for wide in (sigma, 3.0 * sigma):
            found.append(
                gaussian_filter(image, wide, order=(2, 0))
                + gaussian_filter(image, wide, order=(0, 2))
            )
    found += [gaussian_filter(image, sigma) for sigma in _ROUND]
    return np.stack(found, axis=-1)


def _oriented(image: NDArray[Any], sigma: float, angle: float, order: int) -> NDArray[Any]:
    """The derivative across a Gaussian three times as long as wide, turned by ``angle``."""
    from scipy.signal import fftconvolve

    reach = int(np.ceil(9.0 * sigma))
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    along, across = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    ratio = across / sigma
    shape = -ratio / sigma if order == 1 else (ratio**2 - 1.0) / sigma**2
    kernel = shape * np.exp(-0.5 * (ratio**2 + (along / (3.0 * sigma)) ** 2))
    kernel -= kernel.mean()
    padded = np.pad(image, reach, mode="symmetric")
    return fftconvolve(padded, kernel / np.abs(kernel).sum(), mode="valid")  # type: ignore[no-any-return]


def _textons(responses: list[Any], count: int, random: np.random.Generator) -> NDArray[Any]:
    """(count, 48) centers of responses, of at most 100 pixels per texton."""
    from sklearn.cluster import MiniBatchKMeans

    pixels = np.concatenate([part.reshape(-1, part.shape[-1]) for part in responses])
    if len(pixels) < count:
        raise StreamError(f"{count} textons are wanted, the images have {len(pixels)} pixels")
    some = random.choice(len(pixels), min(len(pixels), 100 * count), replace=False)
    seed = int(random.integers(2**31 - 1))
    found = MiniBatchKMeans(count, random_state=seed, n_init=3).fit(pixels[some])
    return np.asarray(found.cluster_centers_, dtype=np.float64)


def _histograms(responses: Any, centers: NDArray[Any], patch: int) -> NDArray[Any]:
    """(rows, columns, textons): of each patch, by the place of its first pixel."""
    from scipy.ndimage import uniform_filter
    from sklearn.metrics import pairwise_distances_argmin

    height, width, _ = responses.shape
    flat = responses.reshape(height * width, -1)
    nearest = pairwise_distances_argmin(flat, centers).reshape(height, width)
    start = patch // 2
    inside = (slice(start, start + height - patch + 1), slice(start, start + width - patch + 1))
    out = np.empty((height - patch + 1, width - patch + 1, len(centers)), dtype=np.float32)
    for texton in range(len(centers)):
        mean = uniform_filter((nearest == texton).astype(np.float64), patch)
        out[..., texton] = mean[inside]
    return out


def _image_files(folder: str | os.PathLike[str]) -> list[Path]:
    files = sorted(file for file in Path(folder).iterdir() if file.suffix.lower() in _SUFFIXES)
    if len(files) < 2:
        raise StreamError(
            f"'{folder}' holds {len(files)} images; two at least are needed, one for each texture "
            f"({', '.join(_SUFFIXES)})"
        )
    return files


def _grey(path: Path) -> NDArray[np.float64]:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("images are read by Pillow: pip install 'kernelstream[plot]'") from error
    with Image.open(path) as image:
        grey = np.asarray(image.convert("F"), dtype=np.float64)
    spread = grey.std()
    if spread == 0.0:
        raise StreamError(f"'{path}' is of one grey: no texture")
    return (grey - grey.mean()) / spread
