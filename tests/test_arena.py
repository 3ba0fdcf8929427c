"""The arena: the same search for all, cells that are kept, tests over streams, pages."""

import numpy as np
import pytest
from scipy import stats

from benchmarks import arena, arena_page, arena_streams
from benchmarks.arena_methods import RANGES, VARIANTS, candidate, contestants
from benchmarks.arena_pictures import front
from benchmarks.arena_statistics import compare
from kernelstream import registry
from kernelstream.parameters import parameters_of


def test_every_model_takes_part():
    found = [*contestants(False).values(), *contestants(True).values()]
    assert {each.method for each in found} == set(registry.models())
    assert {each.kind for each in found} == {
        kind for method in registry.models().values() for kind in method.estimators
    }


def test_variants_are_what_they_are_called():
    found = contestants(False)
    for name, variants in VARIANTS.items():
        assert set(variants) <= set(found)
        assert name not in found


@pytest.mark.parametrize("numbers", [False, True])
def test_trials_are_the_same_for_all_and_accepted(numbers):
    seen = {}
    for contestant in contestants(numbers).values():
        assert candidate(contestant, 0, 5) == {}
        for trial in (1, 2, 3):
            chosen = candidate(contestant, trial, 5)
            kind = contestant.kind
            kind(max_points=50, **chosen, **contestant.fixed)._check_parameters()
            assert set(chosen) <= set(RANGES) & set(parameters_of(kind))
            if "gamma" in chosen:
                assert seen.setdefault(trial, chosen["gamma"]) == chosen["gamma"]
    assert len(set(seen.values())) == 3


def test_differences_are_found_where_they_are():
    random = np.random.default_rng(0)
    base = random.uniform(1.0, 2.0, (30, 1))
    noise = np.exp(0.01 * random.normal(size=(30, 4)))
    errors = base * noise * np.array([1.0, 1.0, 1.5, 1.5])
    found = compare(["a", "b", "c", "d"], errors)
    assert {*found.names[:2]} == {"a", "b"}
    assert found.groups == [(0, 1), (2, 3)]
    assert found.friedman == pytest.approx(stats.friedmanchisquare(*errors.T).pvalue)
    assert found.ranks.mean() == pytest.approx(2.5)
    # Two methods: Nemenyi's distance is that of a normal test of the mean rank's difference.
    two = compare(["a", "b"], errors[:, :2])
    assert two.distance == pytest.approx(stats.norm.ppf(0.975) / np.sqrt(30), rel=1e-3)


def test_runs_that_failed_are_last_and_equal_ones_alike():
    errors = np.column_stack([np.full(9, np.inf), np.ones(9), np.ones(9)])
    found = compare(["failed", "x", "y"], errors)
    assert found.names[-1] == "failed"
    assert found.ranks.tolist() == [1.5, 1.5, 3.0]
    assert found.alike[0, 1]


def test_the_front_holds_what_nothing_beats():
    costs, errors = np.array([3.0, 1.0, 2.0, 4.0, 1.0]), np.array([1.0, 5.0, 6.0, np.inf, 4.0])
    assert front(costs, errors) == [4, 0]


def test_no_model_at_all():
    y = np.array([0, 1, 1, 1, 0, 0, 0, 0])
    nothing = np.zeros(8)
    stream = arena_streams.Contest(None, np.zeros((8, 1)), y, nothing, nothing, False)
    assert arena.score(np.concatenate([y[:1], y[:-1]]), stream, 0) == 25.0
    assert arena._baseline("no-change", stream)["error"] == pytest.approx(100.0 / 6.0)  # after 2
    numbers = stream._replace(y=y.astype(float), numbers=True)
    mean = [1 / 2, 2 / 3, 3 / 4, 3 / 5, 3 / 6, 3 / 7]
    wrong = np.sqrt(np.mean((y[2:] - mean) ** 2)) / y[2:].std()
    assert arena._baseline("prior", numbers)["error"] == pytest.approx(wrong)


def cells(*errors):
    """Of two methods on a stream, an error for each order."""
    return arena_page.pd.DataFrame(
        {"stream": "s", "numbers": True, "method": method, "budget": 50, "order": order,
         "error": error, "us": 1.0, "points": 1, "bytes": 1}
        for method, found in zip("ab", errors, strict=True) for order, error in enumerate(found)
    )  # fmt: skip


def test_errors_are_means_over_all_orders_or_do_not_count():
    mean = arena_page.over_orders(cells([1.0, 2.0, 3.0], [1.0, 2.0])).set_index("method")
    assert list(mean.index) == ["a"]
    assert mean.error["a"] == 2.0
    assert mean.spread["a"] == pytest.approx(0.5)
    failed = arena_page.over_orders(cells([1.0, np.inf, 1.0], [1.0, 1.0, 1.0]))
    assert list(failed.error) == [np.inf, 1.0]


def test_smaller_arenas_have_all_orders_and_budgets_but_for_the_smallest(monkeypatch):
    plans = {}
    for share in ("1", "0.25", "0.1"):
        monkeypatch.setenv("KERNELSTREAM_BENCH_SHARE", share)
        plans[share] = arena.plan()
    assert {plan.rows for plan in plans.values()} == {20_000, 5000, 2000}
    assert plans["1"].orders == plans["0.25"].orders == 3
    assert plans["1"].budgets == plans["0.25"].budgets == arena.BUDGETS
    assert plans["0.1"].orders == 1


def test_some_methods_can_be_measured_alone(monkeypatch):
    every = contestants(False)
    assert arena.wanted(every) == every
    monkeypatch.setenv("KERNELSTREAM_BENCH_METHODS", "polk, bogd")
    assert set(arena.wanted(every)) == {"polk", "bogd (uniform)", "bogd (weighted)"}
    monkeypatch.setenv("KERNELSTREAM_BENCH_METHODS", "plok")
    with pytest.raises(SystemExit, match="no method named plok"):
        arena.wanted(every)


@pytest.mark.slow
def test_a_small_arena_is_measured_once_and_written(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERNELSTREAM_BENCH_SHARE", "0.02")
    monkeypatch.setattr(arena_streams, "folder", lambda: None)
    chosen = ("SEA", "moving squares", "multidist", "season and trend", "random walk")
    some = {name: arena_streams.sources()[name] for name in chosen}
    for module in (arena, arena_streams, arena_page):
        monkeypatch.setattr(module, "sources", lambda: some)
    methods = {
        numbers: {n: k for n, k in contestants(numbers).items() if n in ("polk", "avm", "krlst")}
        for numbers in (False, True)
    }
    for module in (arena, arena_page):
        monkeypatch.setattr(module, "contestants", methods.get)
    monkeypatch.setattr(arena, "plan", lambda: arena.Plan(300, 60, 3, (5, 10), 2))
    (tmp_path / "docs").mkdir()
    (tmp_path / arena_page.RECORDED).mkdir(parents=True)
    for page in ("arena.md", "which_method.md"):
        marks = f"before\n{arena_page.BEGIN}\nold\n{arena_page.END}\nafter"
        (tmp_path / "docs" / page).write_text(marks)
    arena.main()
    cells = list(arena.stored())
    assert len(cells) == 5 * 3 * (3 * 2 + 2)
    assert all(cell["failed"] == "" and cell["error"] >= 0.0 for cell in cells)
    assert all(cell["points"] <= cell["budget"] for cell in cells if cell["method"] != "krlst")
    page = (tmp_path / "docs" / "arena.md").read_text()
    assert page.startswith("before")
    assert page.endswith("after")
    assert "old" not in page
    assert "| POLK |" in page
    assert "each in 3 orders" in page
    assert "3 methods on 3 streams; an error is the mean over 3 orders" in page
    assert (tmp_path / "build" / "arena" / "SEA.png").exists()
    assert len(arena_page.pd.read_parquet(arena.results("parquet"))) == len(cells)
    # Nothing is measured again; a line that was cut off is.
    lines = arena.results("jsonl").read_text().splitlines()
    arena.results("jsonl").write_text("\n".join([*lines[:-1], lines[-1][:20]]) + "\n")
    measured = []
    real = arena.measure
    monkeypatch.setattr(arena, "measure", lambda *a: measured.append(a) or real(*a))
    arena.main()
    assert len(measured) == 1
    # One method again: the cells of the others are those beside the page.
    arena.results("jsonl").unlink()
    monkeypatch.setenv("KERNELSTREAM_BENCH_METHODS", "avm")
    before = arena_page.measured()
    measured.clear()
    arena.main()
    assert {contestant.method for contestant, *_ in measured} == {"avm"}
    after = arena_page.measured()
    assert len(after) == len(before)
    assert (after.error == before.error).all()
    changed = before.us != after.us
    assert set(before.method[changed]) == {"avm"}
