"""Columns in units that move with the stream, one number at a time."""

import math


def moving(values):
    """A column as the model sees it; ``None`` is a missing value."""
    seen, out = [], []
    mean = variance = filled = power = 0.0
    for value in values:
        if value is None:
            out.append(0.0)
            continue
        seen.append(value)
        rate = max(1.0 / len(seen), 1.0 / 4000.0)
        variance = (1.0 - rate) * (variance + rate * (value - mean) ** 2)
        mean += rate * (value - mean)
        filled += rate * ((value != 0.0) - filled)
        power += rate * (value**2 - power)
        out.append(_compressed(value, seen, mean, variance, filled, power))
    return out


def _compressed(value, seen, mean, variance, filled, power):
    center, unit = mean, math.sqrt(variance)
    if 0.0 < filled < 0.5:  # mostly zero
        center, unit = 0.0, max(unit, math.sqrt(power / filled) / 2.0)
    elif len(set(seen)) == 2:
        unit = max(unit, (max(seen) - min(seen)) / 2.0)
    if unit <= 1e-14 * abs(center):
        return 0.0
    z = (value - center) / unit
    return z if abs(z) <= 3.0 else math.copysign(3.0 + math.log(abs(z) - 2.0), z)
