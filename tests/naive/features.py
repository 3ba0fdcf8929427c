"""Kernel features (OK-FE, OK-FEB), Algorithms 1 to 5 step by step.

The subspace is L = Phi_S A: S the stored samples, A with one row for each and one column for
each feature. Errata of the paper, and what is done here:

* A[1] = 1 (Algorithms 2 and 3), or a random row for S = {1} (Algorithm 4), gives a subspace of
  rank one, up to rounding: q lies in the row space of A, and A <- A (I - mu (q q' + ..)), mu q'
  does not leave it. Here the first r samples are S, and A is a given r x r matrix of full rank.
* (6b) prints l = |phi - L q|^2 / 2 and then its expansion without the half. The fit error
  here is the whole square, as in Algorithm 4; the gradients (14) and (19b) belong to the half.
* The bracket of (5) closes too early; the objective here is (3).
* The text degrades the recency of the stored samples at every inclusion, Algorithm 5 only when
  one is discarded, and that of the new sample too. ``degrade`` chooses.
* 1/|q| and the term lambda/n as printed have no bound where q tends to 0: A then overflows.
  ``largest_step`` bounds the step by 1 / (|q|^2 + lambda/n), the gamma_n of Proposition 2.
* (19) is a step with the matrix D_n = Phi Phi' (20). Proposition 3 therefore divides its steps
  by n = tr K, the experiments take 1/n^2, and Algorithm 4 says nothing. ``matrix_step`` divides
  the steps of (19), except 1/n^2, and their bound by the norm of K.
* Z in Remark 4 has |S| rows while (37) learns r weights; (A' K A)^(1/2) q has the same inner
  products and r rows.
"""

import math
from typing import NamedTuple

import numpy as np

from tests.naive import kernels


class Batch(NamedTuple):
    factor: np.ndarray  # (n, r): A
    coefficients: np.ndarray  # (r, n): Q
    objective: list  # (3) after every update of Q and of A


class Online(NamedTuple):
    points: np.ndarray  # (|S|, p)
    factor: np.ndarray  # (|S|, r): A, divided by exp(log_scale)
    log_scale: float
    stored: list  # which samples are stored, in the order of their rows
    recency: list  # eta of each
    coefficients: list  # q of every learned sample, in the basis of its moment
    errors: list  # |phi(x) - L q|^2 of every learned sample, before it was learned from
    updated: list  # whether it was not censored
    discarded: list  # the sample that was discarded because of it, or None


# ---- parts ---------------------------------------------------------------------------------


def coefficients(K, A, k, regularisation):
    """q = (A' K A + lambda I)^-1 A' k   (7), (11b); for all columns of k."""
    r = A.shape[1]
    return np.linalg.solve(A.T @ K @ A + regularisation * np.eye(r), A.T @ k)


def fit_error(K, A, k, own, q):
    """l = k(x, x) - 2 k' A q + q' A' K A q   (Algorithm 4)."""
    return own - 2.0 * k @ A @ q + q @ A.T @ K @ A @ q


def square_root(M, power=0.5):
    """The symmetric root of a positive semi-definite matrix, or another power of it."""
    values, vectors = np.linalg.eigh(M)
    values = np.maximum(values, 0.0)
    raised = np.zeros_like(values)
    large = values > values.max(initial=0.0) * 1e-15
    raised[large] = values[large] ** power
    return (vectors * raised) @ vectors.T


def features(kernel, points, A, X, regularisation):
    """(n, r): z = (A' K A)^(1/2) q, with z.z' = q' A' K A q', the approximation of k(x, x')."""
    K, k = kernels.matrix(kernel, points, points), kernels.matrix(kernel, points, X)
    return (square_root(A.T @ K @ A) @ coefficients(K, A, k, regularisation)).T


def fit_errors(kernel, points, A, X, regularisation):
    """The fit error of every row of X, with the subspace as it is."""
    K, k = kernels.matrix(kernel, points, points), kernels.matrix(kernel, points, X)
    q = coefficients(K, A, k, regularisation)
    own = [kernel(x, x) for x in X]
    return np.array([fit_error(K, A, k[:, i], own[i], q[:, i]) for i in range(len(X))])


def subspace_distance(kernel, points, A, other_points, B):
    """The sine of the largest angle between the spans of Phi_S A and Phi_S' B."""
    K, M = kernels.matrix(kernel, points, points), kernels.matrix(kernel, points, other_points)
    N = kernels.matrix(kernel, other_points, other_points)
    U = A @ square_root(A.T @ K @ A, -0.5)  # orthonormal: U' K U = I
    V = B @ square_root(B.T @ N @ B, -0.5)
    cosines = np.linalg.svd(U.T @ M @ V, compute_uv=False)
    return math.sqrt(max(0.0, 1.0 - min(cosines) ** 2))


def principal_directions(K, r):
    """A of the r orthonormal directions that hold most of the stored samples: kernel PCA."""
    values, vectors = np.linalg.eigh(K)
    return vectors[:, : -r - 1 : -1] / np.sqrt(values[: -r - 1 : -1])


# ---- Algorithm 1 -----------------------------------------------------------------------------


def objective(K, A, Q, regularisation):
    """(3): (1/2N) sum |phi - L q|^2 + (lambda/2N) (|L|^2 + |Q|^2)."""
    n, G = len(K), A.T @ K @ A
    fit = np.trace(K) - 2.0 * np.trace(K @ A @ Q) + np.trace(Q.T @ G @ Q)
    return (fit + regularisation * (np.trace(G) + np.sum(Q**2))) / (2.0 * n)


def batch(kernel, X, A, regularisation=1e-3, iterations=50):
    """Algorithm 1 from a given A[1]."""
    K, r, history = kernels.matrix(kernel, X, X), A.shape[1], []
    for _ in range(iterations):
        Q = coefficients(K, A, K, regularisation)  # (7)
        history.append(objective(K, A, Q, regularisation))
        A = np.linalg.solve(Q @ Q.T + regularisation * np.eye(r), Q).T  # (9)
        history.append(objective(K, A, Q, regularisation))
    return Batch(A, Q, history)


# ---- Algorithms 2 to 5 -----------------------------------------------------------------------


def step_size(rule, n, q, scale=1.0):
    """mu, for n the number of the sample; 0 where q is 0 and the rule divides by it."""
    length = np.linalg.norm(q)
    if rule in ("tracking", "tracking_square") and length == 0.0:
        return 0.0
    return (
        scale
        * {
            "inverse": lambda: 1.0 / n,
            "inverse_square": lambda: 1.0 / n**2,
            "tracking": lambda: 1.0 / length,
            "tracking_square": lambda: 1.0 / length**2,
        }[rule]()
    )


def threshold(censoring, errors):
    """Below this fit error a sample is censored; ``errors`` are those of all samples before."""
    if censoring is None or not errors:
        return -math.inf
    if censoring == "auto":  # the moving average of the last 100
        return float(np.mean(errors[-100:]))
    if isinstance(censoring, tuple):  # ("rate", x): the x-quantile of the last 100
        return float(np.quantile(errors[-100:], censoring[1]))
    return float(censoring)


def distortion(K, A, i):
    """|Phi A - Phi_without_i A_without_i|^2   (24): what the three traces add up to."""
    rest = [j for j in range(len(A)) if j != i]
    B, M = A[rest], K[np.ix_(rest, rest)]
    return np.trace(A.T @ K @ A) - 2.0 * np.trace(B.T @ K[rest] @ A) + np.trace(B.T @ M @ B)


def removed(rule, K, A, recency):
    """The row to discard; of equal ones the first."""
    if rule == "fifo":
        return 0
    if rule == "exact":  # (24)
        return int(np.argmin([distortion(K, A, i) for i in range(len(A))]))
    lengths = np.linalg.norm(A, axis=1)
    if rule == "recency":  # (26)
        return int(np.argmin(np.array(recency) * lengths))
    return int(np.argmin(lengths))  # (25)


def online(
    kernel, X, initial, regularisation=1e-3, solver="parametric", step="inverse", scale=1.0,
    budget=None, censoring=None, removal="greedy", forgetting=1.0, degrade="removal",
    largest_step=False, matrix_step=False, basis="printed", early=0, first_number=None,
    censored_from="budget",
):  # fmt: skip
    """Learn features from the rows of X; the first r of them are stored with A = ``initial``.

    ``basis`` says what is kept between two samples:

    * "printed": A itself.
    * "scaled": A = exp(log_scale) A~ with |A~| = 1. The same iterates in other variables:
      with s the scale, q~ = s q solves (11b) for A~ and lambda / s^2, and the update of A~ is
      that of A with mu / s^2 in the place of mu, except in the term with lambda.
    * "orthonormal": A (A' K A)^(-1/2) after every update. The same span at that moment, but
      other steps from there on.

    When ``early`` samples are stored, A becomes their principal directions (orthonormal; 0: never):
    the paper begins with any A.

    ``first_number`` is n of the first sample after the stored ones, r + 1 unless given.
    ``censored_from`` "budget": nothing is censored before the budget is used up; "start": from
    the first sample after the stored ones.
    """
    r = len(initial)
    if basis == "orthonormal":
        K = kernels.matrix(kernel, X[:r], X[:r])
        initial = initial @ square_root(initial.T @ K @ initial, -0.5)
    points, A = X[:r], np.array(initial, dtype=float)
    K = kernels.matrix(kernel, points, points)
    log_scale, stored, recency = 0.0, list(range(r)), [1.0] * r
    features_, errors, updated, discarded = [], [], [], []
    for n, x in enumerate(X[r:], r + 1 if first_number is None else first_number):
        s = math.exp(log_scale)
        k, own = kernels.matrix(kernel, points, x[None])[:, 0], kernel(x, x)
        q = coefficients(K, A, k, regularisation / s**2)  # (11b), s q in the paper's variables
        error = fit_error(K, A, k, own, q)
        full = censored_from == "start" or budget is None or len(points) >= budget
        used = not (full and error < threshold(censoring, errors))
        features_.append(q / s)
        errors.append(error)
        updated.append(used)
        discarded.append(None)
        if not used:
            continue

        mu, decay = step_size(step, n, q / s, scale), regularisation / n
        K = np.block([[K, k[:, None]], [k[None], np.array([[own]])]])
        k, extended = np.append(k, own), np.vstack([A, np.zeros(r)])
        norm = np.linalg.norm(K) if matrix_step and solver == "nonparametric" else 1.0
        if step != "inverse_square":
            mu /= norm
        if largest_step:
            mu = min(mu, 1.0 / (norm * (float(q @ q) / s**2 + decay)))
        if len(K) == early:
            A = principal_directions(K, r)
        elif solver == "parametric":  # (16)
            A = extended - mu / s**2 * extended @ np.outer(q, q) - mu * decay * extended
            A[-1] = mu / s**2 * q
        else:  # (19)
            fit = K @ extended @ np.outer(q, q) - np.outer(k, q)
            A = extended - mu / s**2 * fit - mu * decay * K @ extended
        points = np.vstack([points, x])
        stored.append(r + len(errors) - 1)
        if degrade == "inclusion":
            recency = [forgetting * eta for eta in recency]
        recency.append(1.0)

        if budget is not None and len(points) > budget:  # Algorithm 5
            if degrade == "removal":
                recency = [forgetting * eta for eta in recency]
            i = removed(removal, K, A, recency)
            rest = [j for j in range(len(A)) if j != i]
            points, A, K = points[rest], A[rest], K[np.ix_(rest, rest)]
            discarded[-1] = stored.pop(i)
            recency.pop(i)

        if basis == "scaled":
            size = np.linalg.norm(A)
            A, log_scale = A / size, log_scale + math.log(size)
        elif basis == "orthonormal":
            A = A @ square_root(A.T @ K @ A, -0.5)
    return Online(
        points, A, log_scale, stored, recency, features_, errors, updated, discarded
    )  # fmt: skip
