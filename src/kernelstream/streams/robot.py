"""A synthetic robot arm: samples with three targets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelstream.streams.synthetic import RandomState, _check_count, _check_not_negative

#: Lengths of the arm's parts.
_LENGTHS = (1.0, 0.8, 0.5)


def make_robot_arm(
    n_samples: int = 5000, *, noise: float = 0.02, random_state: RandomState = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where the hand of an arm is: three coordinates for each sample of joint angles.

    The shoulder turns about the vertical axis and lifts, elbow and wrist bend in the same plane:
    with angles a, b, c, d the hand is at distance r = l1 cos(b) + l2 cos(b + c) + l3 cos(b + c + d)
    from the axis, in the direction a, and at the height of the sines. Angles are drawn uniformly,
    a in +-2, b in 0 .. 1.5, c and d in +-1.2; Gaussian noise is added to the coordinates.

    Parameters
    ----------
    n_samples : int, default=5000
    noise : float, default=0.02
        Standard deviation of the noise of each coordinate; the arm is 2.3 long.
    random_state : int, SeedSequence, Generator or None, default=None

    Returns
    -------
    X : (n_samples, 4) float64, the angles
    Y : (n_samples, 3) float64, the coordinates of the hand

    Examples
    --------
    >>> from kernelstream.streams import make_robot_arm
    >>> X, Y = make_robot_arm(1000, random_state=0)
    >>> X.shape, Y.shape
    ((1000, 4), (1000, 3))
    """
    _check_count("n_samples", n_samples, 1)
    _check_not_negative("noise", noise)
    random = np.random.default_rng(random_state)
    low, high = np.array([-2.0, 0.0, -1.2, -1.2]), np.array([2.0, 1.5, 1.2, 1.2])
    X = random.uniform(low, high, (n_samples, 4))
    bends = np.cumsum(X[:, 1:], axis=1)
    reach, height = np.cos(bends) @ _LENGTHS, np.sin(bends) @ _LENGTHS
    Y = np.stack([reach * np.cos(X[:, 0]), reach * np.sin(X[:, 0]), height], axis=1)
    return X, Y + noise * random.normal(size=Y.shape)
