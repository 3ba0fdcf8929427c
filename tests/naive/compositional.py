"""Algorithm 1 of Bedi et al. (2021) as it is printed: in every step one outer sample theta and one
inner sample xi, each with its own role; functions as lists of points."""

import numpy as np

from tests.naive import kernels
from tests.naive.komp import komp


def algorithm_1(
    kernel, outer_samples, inner_samples, h, h_slope, outer_slopes, n_tracked=None, step=0.1,
    regularisation=0.0, beta=0.05, tracking="momentum", budget=0.0, most=10**9, outputs=None,
):  # fmt: skip
    """Points, weights and g after all pairs (theta_t, xi_t), each sample an (x, y).

    ``outer_slopes(value, g, x, y)``: the derivatives of l_theta in f(theta), 0 in the paper's (24),
    and in g. beta_t = max(beta, 1 / (t + 1)), so that g needs no starting value: our choice.
    ``outputs``: f has so many, and weights, values and derivatives in values are arrays of them.
    """
    width = len(outer_samples[0][0])
    points, weights = np.empty((0, width)), np.empty((0, outputs or 1))
    earlier = points, weights
    g = 0.0 if n_tracked is None else np.zeros(n_tracked)

    def value(x, points, weights):
        found = np.zeros(outputs or 1)
        for d, w in zip(points, weights, strict=True):
            found += w * kernel(d, x)
        return float(found[0]) if outputs is None else found

    for t, (theta, xi) in enumerate(zip(outer_samples, inner_samples, strict=True)):
        rate = max(beta, 1.0 / (t + 1.0))
        f_theta, f_xi = value(theta[0], points, weights), value(xi[0], points, weights)
        now = np.asarray(h(f_xi, *xi))
        if tracking == "average":
            g = (1.0 - rate) * g + rate * now  # (19)
        else:
            then = np.asarray(h(value(xi[0], *earlier), *xi))
            g = (1.0 - rate) * (g - then) + now  # (20)
        in_value, in_tracked = outer_slopes(f_theta, g, *theta)
        slopes = np.reshape(h_slope(f_xi, *xi), (n_tracked or 1, outputs or 1))
        at_xi = np.atleast_1d(in_tracked) @ slopes
        earlier = points, weights
        weights = (1.0 - step * regularisation) * weights  # (24)
        for x, direction in ((theta[0], np.atleast_1d(in_value)), (xi[0], at_xi)):
            if not np.any(direction):
                continue
            same = [j for j in range(len(points)) if (points[j] == x).all()]
            if same:
                weights[same[0]] -= step * direction
            else:
                points, weights = np.vstack([points, x]), np.vstack([weights, -step * direction])
        K = kernels.matrix(kernel, points, points)
        kept, compressed, _ = komp(K, weights, budget, most)
        points, weights = points[kept], compressed[kept]
    return points, weights[:, 0] if outputs is None else weights, g
