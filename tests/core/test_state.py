import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelstream.core.state import (
    STATUS,
    State,
    allocate,
    largest_capacity,
    pack,
    resize,
    spread,
    state_bytes,
    unpack,
)
from tests.core.tools import filled_state, gaussian


@pytest.fixture
def state():
    rng = np.random.default_rng(0)
    filled, _ = filled_state(
        gaussian(1.0), rng.normal(size=(20, 3)), rng.normal(size=(20, 2)), seed=2**63 + 5
    )
    for name, value in {"steps": 7, "seen": 9, "scale": 0.25, "error_spent": 1.5}.items():
        filled.status[0][name] = value
    return filled


def live(state):
    """Every array without its spare capacity."""
    n = state.order
    arrays = state._asdict()
    del arrays["status"]
    arrays["points"], arrays["weights"] = arrays["points"].T, arrays["weights"].T
    arrays["factor"] = arrays["factor"][:, :n]
    return [array[:n] for array in arrays.values()]


def numbers(state):
    return {name: state.status[0][name].tolist() for name in STATUS.names}


def test_an_empty_state():
    state = allocate(3, 2, 5, seed=2**64 - 1)
    assert (state.order, state.capacity) == (0, 5)
    assert state.status[0]["random"] == 2**64 - 1
    assert state.status[0]["scale"] == 1.0
    assert state.status[0]["cheapest"] == np.inf


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 20))
def test_bytes_in_closed_form(capacity, features, columns):
    assert allocate(features, columns, capacity, 0).nbytes == state_bytes(
        capacity, features, columns
    )


@given(st.integers(-10, 10**15), st.integers(0, 10**6), st.integers(1, 2000))
def test_largest_capacity_is_the_largest(limit, features, columns):
    capacity = largest_capacity(limit, features, columns)
    assert capacity >= 0
    assert capacity == 0 or state_bytes(capacity, features, columns) <= limit
    assert state_bytes(capacity + 1, features, columns) > limit


def test_unpack_reverses_pack(state):
    arrays, status = pack(state)
    again = unpack(arrays, status)
    assert all(np.array_equal(a, b) for a, b in zip(live(state), live(again), strict=True))
    assert {name: numbers(again)[name] for name in status} == status
    # What is not kept must be a lower bound, so that the next pruning looks again.
    assert numbers(again)["cheapest"] <= numbers(state)["cheapest"]
    assert again.capacity == max(state.order, 1)


def test_packed_numbers_are_plain_and_arrays_are_copies(state):
    arrays, status = pack(state)
    assert set(status) | {"cheapest"} == set(STATUS.names)
    own = status["own"]
    numbers = [*own, *(value for value in status.values() if value is not own)]
    assert all(type(value) in (int, float) for value in numbers)
    for array in arrays.values():
        assert array.flags.c_contiguous
        assert not any(np.shares_memory(array, part) for part in state)
    again = unpack(arrays, status)
    assert not any(np.shares_memory(array, part) for array in arrays.values() for part in again)


def test_what_older_files_lack_has_a_default(state):
    arrays, status = pack(state)
    older = {
        name: status[name] for name in status if name not in ("pending", "owed", "oldest", "own")
    }
    assert numbers(unpack(arrays, older)) == numbers(unpack(arrays, status))
    for wrong in ({**status, "unknown": 1}, {k: v for k, v in status.items() if k != "steps"}):
        with pytest.raises(ValueError, match="another version"):
            unpack(arrays, wrong)


@pytest.mark.parametrize(
    "numbers",
    [{"pending": 21}, {"oldest": 20}, {"own": [0.0]}, {"own": [np.nan] * 8}, {"own": 0.0}],
)
def test_unpack_refuses_new_numbers_that_do_not_fit(state, numbers):
    arrays, status = pack(state)
    with pytest.raises(ValueError, match=r"contradict|number"):
        unpack(arrays, {**status, **numbers})


@pytest.mark.parametrize("name", [name for name in State._fields if name != "status"])
def test_unpack_refuses_what_does_not_fit(state, name):
    for spoil in (
        lambda array: array[..., :-1],
        lambda array: array.astype(np.float32),
        lambda array: np.where(array == array.flat[0], np.nan, array),
        lambda array: array.reshape(-1, *array.shape[2:]) if array.ndim > 1 else array[None],
    ):
        arrays, status = pack(state)
        if name == "weights" and spoil(arrays[name]).shape == (state.order, 1):
            continue  # fewer outputs are no contradiction
        arrays[name] = spoil(arrays[name])
        with pytest.raises(ValueError, match=r"state|array"):
            unpack(arrays, status)


@pytest.mark.parametrize(
    "change",
    [
        {"order": 19},
        {"steps": 2**62},
        {"scale": 0.0},
        {"scale": 1.5},
        {"scale": np.nan},
        {"extra": 1},
    ],
)
def test_unpack_refuses_contradicting_numbers(state, change):
    arrays, status = pack(state)
    with pytest.raises(ValueError, match=r"state|version"):
        unpack(arrays, status | change)
    del status["seen"]
    with pytest.raises(ValueError, match=r"state|version"):
        unpack(arrays, status)


@pytest.mark.parametrize("capacity", [20, 33])
def test_resize_keeps_everything(state, capacity):
    new = resize(state, capacity)
    assert new.capacity == capacity
    assert all(np.array_equal(a, b) for a, b in zip(live(state), live(new), strict=True))
    assert numbers(new) == numbers(state)
    assert not any(np.shares_memory(a, b) for a, b in zip(state, new, strict=True))


def test_resize_adds_and_drops_columns(state):
    wider = resize(state, 25, columns=4)
    assert np.array_equal(wider.weights[:2, :20], state.weights[:, :20])
    assert not wider.weights[2:].any()
    narrower = resize(wider, 25, columns=1)
    assert np.array_equal(narrower.weights[0, :20], state.weights[0, :20])


def test_resize_refuses_to_lose_points(state):
    with pytest.raises(ValueError, match="20 points"):
        resize(state, 19)


@pytest.mark.parametrize("least", [1, 17, 500])
@pytest.mark.parametrize("capacity", [16, 32, 48, 512, 1024])
def test_spread_capacities_are_odd_numbers_of_cache_lines(capacity, least):
    found = spread(capacity, least)
    assert least <= found <= max(capacity, least)
    assert found == least or (found // 8) % 2 == 1


def test_unpack_refuses_a_width_that_no_array_bears_out():
    """Points without a byte may have any width: room for them would be all the memory there is."""
    arrays, status = pack(allocate(3, 1, 4, seed=0))
    unpack(arrays, status)
    arrays["points"] = np.zeros((2**40, 0))
    with pytest.raises(ValueError, match="contradict"):
        unpack(arrays, status)
