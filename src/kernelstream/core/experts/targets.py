"""Experts that look at earlier targets alone."""

import numpy as np

from kernelstream.core.jit import compiled, inner


@inner
def find_row(owners, label):
    """The row of a class; -1 where it has none."""
    if label < len(owners) and owners[label] == label:  # as it is where there are few classes
        return label
    for row in range(len(owners)):
        if owners[row] == label:
            return row
    return -1


@inner
def give_row(counts, owners, times, label):
    """A row for a class that has none: that of the class which was longest not the last one."""
    row = np.argmin(times)
    owners[row] = label
    for e in range(counts.shape[0]):
        for c in range(counts.shape[2]):
            counts[e, row, c] = 0.0
    return row


@compiled
def chain_pass(last, counts, owners, times, decays, targets, out, first):
    """Classes by how often each followed the last one; the last expert counts classes alone.

    Parameters
    ----------
    last : (1,) the last class, -1 before there was one
    counts : (experts, rows + 1, classes): what followed the class of each row, and what came at all
    owners : (rows,) the class of each row
    times : (rows,) when it was the last class; with more classes than rows the latest have one
    decays : (experts,) by which older counts shrink
    targets : (n, 1) classes, or (0, 1): predict alone
    out : (n, all experts, classes), from ``first`` on
    """
    experts, classes, rows = counts.shape[0], counts.shape[2], len(owners)
    for t in range(len(out)):
        own = rows
        if last[0] >= 0.0:
            own = find_row(owners, np.int64(last[0]))
            if len(targets):
                if own < 0:
                    own = give_row(counts, owners, times, np.int64(last[0]))
                times[own] = times.max() + 1
        for e in range(experts):
            row = rows if e == experts - 1 else own
            if row < 0:  # nothing is known about what follows
                for c in range(classes):
                    out[t, first + e, c] = 1.0 / classes
                continue
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
