"""How far the means of responses differ between the parts of a column."""

import numpy as np

from kernelstream.core.jit import compiled, inner


@inner
def find_parts(column, edges, top, parts, counts):
    """The part of each number, and how many lie in each. Returns how many parts are in use.

    A number is in the part after all edges below it, the largest one in the last part.
    """
    for part in range(len(counts)):
        counts[part] = 0.0
    for t in range(len(column)):
        part = 0
        for k in range(len(edges)):
            part += 1 if column[t] > edges[k] else 0
        parts[t] = len(edges) if column[t] == top else part
        counts[parts[t]] += 1.0
    used = 0
    for part in range(len(counts)):
        used += counts[part] > 0.0
    return used


@compiled
def between_parts(columns, edges, responses, used, statistics):
    """Sums of squares between the parts of each column.

    Parameters
    ----------
    columns : (p, n)
    edges : (p, parts - 1), in order
    responses : (n, m), each of mean 0
    used : (p,), out: parts that are not empty.
    statistics : (m, p), out
    """
    n, m, count = len(responses), responses.shape[1], edges.shape[1] + 1
    parts, counts, sums = np.empty(n, np.int64), np.empty(count), np.empty((count, m))
    for j in range(len(columns)):
        used[j] = find_parts(columns[j], edges[j], columns[j].max(), parts, counts)
        sums[:] = 0.0
        for t in range(n):
            own = parts[t]
            for r in range(m):
                sums[own, r] += responses[t, r]
        for r in range(m):
            statistics[r, j] = 0.0
            for part in range(count):
                statistics[r, j] += sums[part, r] * sums[part, r] / max(counts[part], 1.0)
