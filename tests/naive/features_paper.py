"""OK-FE and OK-FEB as their algorithm boxes print them, and nothing else.

``tests/naive/features.py`` is the twin of the compiled pass, with everything that differs from the
paper; here is the paper. Two things the boxes leave open are arguments: the start, since a single
row (A[1] = 1, or random) is of rank one and only rounding makes more of it (:func:`row_rank`), and
the step. ``kernel_matrix`` is that of all samples; n counts them from 1, and as many as A has rows
are stored before the first step.
"""

import numpy as np


def algorithm_1(K, A, regularisation, iterations):
    """Batch: (7) and (9) in turn; returns A and Q."""
    identity = np.eye(A.shape[1])
    for _ in range(iterations):
        Q = np.linalg.solve(A.T @ K @ A + regularisation * identity, A.T @ K)  # (7)
        A = Q.T @ np.linalg.inv(Q @ Q.T + regularisation * identity)  # (9)
    return A, Q


def algorithm_2(kernel_matrix, A, regularisation, step):
    """Parametric, no budget: (11b) and (16); returns A and the fit errors."""
    r, first, errors = A.shape[1], len(A), []
    for n in range(first + 1, len(kernel_matrix) + 1):
        before, x = list(range(n - 1)), n - 1
        K, k, own = _kernels(kernel_matrix, before, x)
        q = np.linalg.solve(A.T @ K @ A + regularisation * np.eye(r), A.T @ k)  # (11b)
        errors.append(own - 2.0 * k @ A @ q + q @ A.T @ K @ A @ q)
        mu = step(n, q)
        upper = A - mu * A @ (np.outer(q, q) + regularisation / n * np.eye(r))  # (16)
        A = np.vstack([upper, mu * q])
    return A, errors


def algorithm_3(kernel_matrix, A, regularisation, step):
    """Nonparametric, no budget: (11b) and (19); returns A and the fit errors."""
    r, first, errors = A.shape[1], len(A), []
    for n in range(first + 1, len(kernel_matrix) + 1):
        before, x = list(range(n - 1)), n - 1
        K, k, own = _kernels(kernel_matrix, before, x)
        q = np.linalg.solve(A.T @ K @ A + regularisation * np.eye(r), A.T @ k)  # (11b)
        errors.append(own - 2.0 * k @ A @ q + q @ A.T @ K @ A @ q)
        A = np.vstack([A, np.zeros(r)])
        A = A - step(n, q) * _gradient(
            kernel_matrix, [*before, x], x, A, q, regularisation / n
        )  # (19a)
    return A, errors


def algorithm_4(kernel_matrix, A, regularisation, step, budget, forgetting=1.0, threshold=0.0):
    """OK-FEB: (11b), the fit error, (19) unless it is below ``threshold``, and Algorithm 5.

    Returns the numbers of the stored samples, from 0, A, and the fit errors. As the text says,
    nothing is censored before the budget is used up.
    """
    r, stored, recency, errors = A.shape[1], list(range(len(A))), np.ones(len(A)), []
    for n in range(len(A) + 1, len(kernel_matrix) + 1):
        x = n - 1
        K, k, own = _kernels(kernel_matrix, stored, x)
        q = np.linalg.solve(A.T @ K @ A + regularisation * np.eye(r), A.T @ k)  # (11b)
        error = own - 2.0 * k @ A @ q + q @ A.T @ K @ A @ q
        errors.append(error)
        if error < threshold and len(stored) >= budget:
            continue
        stored, recency = [*stored, x], np.append(recency, 1.0)
        A = np.vstack([A, np.zeros(r)])
        A = A - step(n, q) * _gradient(kernel_matrix, stored, x, A, q, regularisation / n)
        if len(stored) > budget:
            stored, A, recency = algorithm_5(stored, A, recency, forgetting)
    return stored, A, errors


def algorithm_5(stored, A, recency, forgetting):
    """Budget maintenance: degrade, and discard the sample of (26)."""
    recency = forgetting * recency
    i = int(np.argmin(recency * np.linalg.norm(A, axis=1)))  # (26); (25) with forgetting 1
    return stored[:i] + stored[i + 1 :], np.delete(A, i, axis=0), np.delete(recency, i)


def _kernels(kernel_matrix, S, x):
    """K(S, S), k(S, x) and k(x, x)."""
    return kernel_matrix[np.ix_(S, S)], kernel_matrix[S, x], kernel_matrix[x, x]


def _gradient(kernel_matrix, S, x, A, q, weight):
    """G of (19b); A has its row of zeros already."""
    K, k, _ = _kernels(kernel_matrix, S, x)
    return K @ A @ np.outer(q, q) - np.outer(k, q) + weight * K @ A


def inverse(n, q):
    """mu = 1 / n."""
    return 1.0 / n


def inverse_square(n, q):
    """mu = 1 / n^2 (Section VII-A)."""
    return 1.0 / n**2


def tracking(n, q):
    """mu = 1 / |q| (Section VII-B)."""
    return 1.0 / np.linalg.norm(q)


def row_rank(A):
    """Directions of A that are more than a millionth of the strongest."""
    values = np.linalg.svd(A, compute_uv=False)
    return int((values > 1e-6 * values[0]).sum())
