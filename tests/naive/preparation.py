"""Running standardisation, one number at a time."""

import math


def standardised(values, warm_up):
    """A column as the model sees it: each value by the mean and deviation of all up to it.

    ``None`` is a missing value. After ``warm_up`` rows mean and deviation stay.
    """
    seen, out = [], []
    for row, value in enumerate(values):
        if row < warm_up and value is not None:
            seen.append(value)
        mean = math.fsum(seen) / len(seen) if seen else 0.0
        variance = math.fsum((v - mean) ** 2 for v in seen) / len(seen) if seen else 0.0
        if value is None:
            out.append(0.0)
        elif len(set(seen)) <= 1:
            out.append(float((value > mean) - (value < mean)) if row >= warm_up else 0.0)
        else:
            out.append(max(-1e6, min(1e6, (value - mean) / math.sqrt(variance))))
    return out
