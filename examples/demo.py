"""Learn a stream of five intertwined classes with a handful of points, and draw the result.

Prints the error, the number of points and the speed; saves the picture in ``demo-output/``.
"""

import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from kernelstream import POLKClassifier, make_multidist
from kernelstream.evaluation import plot_decision_surface

OUTPUT = Path("demo-output")


def main() -> None:
    """Run the demonstration."""
    X, y, X_test, y_test = make_multidist(100_000, n_test=10_000, random_state=6)
    model = POLKClassifier(gamma=1 / 1.2, eta0=4.0, epsilon=0.6, max_points=20, average=True)
    print("Compiling (once per machine; cached afterwards) ...", flush=True)
    model.partial_fit(X[:10], y[:10], classes=range(5))

    print("\n  samples   test error   points   memory")
    seconds = 0.0
    start, size = 10, 1000
    while start < len(y):
        part = slice(start, min(start + size, len(y)))
        begin = time.perf_counter()
        model.partial_fit(X[part], y[part])
        seconds += time.perf_counter() - begin
        start, size = part.stop, 2 * size
        error = 100.0 * (1.0 - model.score(X_test, y_test))
        print(f"{model.n_seen_:9,}   {error:8.2f} %   {model.model_order_:6}   "
              f"{model.nbytes_ / 1024:.1f} KiB", flush=True)  # fmt: skip
    print(f"\n{seconds / (len(y) - 10) * 1e6:.2f} microseconds per sample, one thread")

    figure, axes = plt.subplots(figsize=(7.0, 6.0), layout="constrained")
    plot_decision_surface(model, X[:1500], y[:1500], ax=axes, test_error=error / 100.0)
    OUTPUT.mkdir(exist_ok=True)
    path = OUTPUT / "multidist.png"
    figure.savefig(path, dpi=110)
    print(f"decision surface with the stored points: {path}")


if __name__ == "__main__":
    main()
