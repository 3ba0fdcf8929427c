"""How much of a long benchmark is run: KERNELSTREAM_BENCH_SHARE=0.01 makes it a hundredth."""

import os


def share() -> float:
    """The part to run; 1 unless the environment says otherwise."""
    return float(os.environ.get("KERNELSTREAM_BENCH_SHARE", 1.0))
