"""POLK's settings on the data sets, one pass, lambda 1e-6."""

from typing import Any

STREAMS: dict[str, dict[str, Any]] = {
    "a9a": {"gamma": 1 / 16, "eta0": 0.1, "compression_error": 0.042},
    "w8a": {"gamma": 1 / 16, "eta0": 0.4, "compression_error": 0.19},
    "cod-rna": {"gamma": 1 / 8, "eta0": 0.6, "compression_error": 0.28},
    "ijcnn1": {"gamma": 1.0, "eta0": 1.0, "compression_error": 0.42},
}
