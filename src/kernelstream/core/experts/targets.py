"""Experts that look at earlier targets alone."""

import numpy as np

from kernelstream.core.jit import compiled


@compiled
def chain_pass(last, counts, decays, targets, out, first):
    """Classes by how often each followed the last one; the last expert counts classes alone.

    Parameters
    ----------
    last : (1,) the last class, -1 before there was one
    counts : (experts, classes + 1, classes): what followed each class, and what came at all
    decays : (experts,) by which older counts shrink
    targets : (n, 1) classes, or (0, 1): predict alone
    out : (n, all experts, classes), from ``first`` on
    """
    experts, classes = counts.shape[0], counts.shape[2]
    for t in range(len(out)):
        for e in range(experts):
            row = classes if e == experts - 1 or last[0] < 0.0 else np.int64(last[0])
            total = 0.5
            for c in range(classes):
                total += counts[e, row, c]
            for c in range(classes):
                out[t, first + e, c] = (counts[e, row, c] + 0.5 / classes) / total
            if len(targets):
                for c in range(classes):
                    counts[e, row, c] *= decays[e]
                counts[e, row, np.int64(targets[t, 0])] += 1.0
        if len(targets):
            last[0] = targets[t, 0]


@compiled
def level_pass(last, level, seen, targets, out, first):
    """Numbers by the last ones, and by their running means.

    Parameters
    ----------
    last, level : (q,)
    seen : (1,)
    targets : (n, q), or (0, q): predict alone
    out : (n, all experts, q), from ``first`` on
    """
    for t in range(len(out)):
        if len(targets):
            seen[0] += 1.0
        for c in range(len(last)):
            out[t, first, c] = last[c]
            out[t, first + 1, c] = level[c]
            if len(targets):
                last[c] = targets[t, c]
                level[c] += max(1.0 / seen[0], 1e-3) * (targets[t, c] - level[c])
