"""``python -m benchmarks [name ...]``: measure, and print Markdown tables."""

import argparse
import os
import sys
from importlib import import_module

#: Module and function of each; imported when it runs, since some need packages that others do not.
BENCHMARKS = {
    "comparison": "comparison.main",
    "kol": "outside.kol",
    "kol-speed": "outside.kol_speed",
    "budgetedsvm": "budgetedsvm.main",
    "calls": "speed.calls",
    "sparse": "speed.sparse",
    "outputs": "engine.outputs",
    "slack": "engine.slack",
    "first-use": "engine.first",
    "endurance": "speed.endurance",
    "polk-rates": "polk_rates.main",
    "vectors": "vectors.main",
    "stability": "accuracy.stability",
    "parsimony": "accuracy.parsimony",
    "multidist-budgets": "multidist_budgets.main",
    "streams": "accuracy.streams",
    "defaults": "accuracy.defaults",
    "auto": "auto.main",
    "auto-tables": "auto.tables",
    "auto-whole": "auto.whole",
    "auto-soak": "auto_parts.soak",
    "auto-parts": "auto_parts.ablation",
    "auto-small": "auto_small.main",
    "raw-tables": "raw_tables.main",
    "auto-memory": "auto_parts.memory",
    "board": "board.main",
    "arena": "arena.main",
    "arena-page": "arena_page.main",
    "mnist": "accuracy.mnist",
    "mnist-busy": "accuracy.mnist_busy",
    "intervals": "intervals.main",
    "calibration": "calibration.main",
    "avm": "avm.main",
    "avm-speed": "avm.speed",
    "avm-cells": "avm_cells.main",
    "avm-delta": "avm_delta.main",
    "avm-tables": "avm_tables.main",
    "avm-authors": "avm_tables.authors",
    "avm-baselines": "avm_baselines.main",
    "avm-wide-kernel": "avm_baselines.wide",
    "avm-theorem15": "avm.theorem_15",
    "colk-risks": "colk_risks.risks",
    "colk-speed": "colk_risks.speed",
    "colk-tracker": "colk_tracker.main",
    "colk-claims": "colk_claims.main",
    "tradeoff": "tradeoff.main",
    "colk": "colk.main",
    "colk-lidar": "colk.lidar",
    "policy": "policy.main",
    "policy-walk": "policy.walks",
    "features-spheres": "features.spheres",
    "features-tracking": "features.tracking",
    "features-proposition4": "features.proposition4",
    "features-online": "features.online",
    "features-steps": "features_steps.main",
    "features-approximations": "features_approximations.main",
    "features-memory": "features.memory",
    "features-drift": "features.drift",
    "export": "export.main",
    "importances": "importances.main",
    "drifts": "drifts.main",
    "novelty": "novelty.main",
    "units": "units.units",
    "categories": "units.categories",
    "many-texts": "many_texts.main",
    "tool": "tool.tool",
    "kafbox": "kafbox.main",
    "kafbox-compare": "kafbox.compare",
    "kill": "kill.main",
    "soak": "soak.main",
    "fuzz": "fuzz.main",
    "sharding": "sharding.main",
    "network-costs": "network_costs.main",
    "network": "network.main",
    "network-penalty": "network.penalty",
    "network-proximity": "network.proximity",
    "network-rates": "network.rates",
}
#: What ``make bench`` runs: a few minutes.
USUAL = ("comparison", "calls", "sparse", "avm-speed")


def main() -> None:
    """Run the benchmarks named on the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names, usual = ", ".join(BENCHMARKS), ", ".join(USUAL)
    parser.add_argument("names", nargs="*", help=f"of {names}; default: {usual}")
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the work, of those that take long"
    )
    given = parser.parse_args()
    chosen = given.names or USUAL
    if given.quick:
        os.environ.setdefault("KERNELSTREAM_BENCH_SHARE", "0.1")
    unknown = [name for name in chosen if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark named {unknown[0]}; there are {names}")
    for name in chosen:
        module, function = BENCHMARKS[name].split(".")
        try:
            run = getattr(import_module(f"benchmarks.{module}"), function)
        except ModuleNotFoundError as error:
            sys.exit(f"{name} needs the package {error.name}: pip install '.[bench]' or make bench")
        run()


if __name__ == "__main__":
    main()
