"""BLAS has one thread while it works for a model, and afterwards as many as before."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kernelstream.core.threads import one_thread


def threads():
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


def test_one_thread_within_and_two_again_afterwards():
    with threadpool_limits(2, user_api="blas"):
        with one_thread():
            assert threads() == {1}
            with one_thread(), one_thread(wanted=False):
                assert threads() == {1}
            assert threads() == {1}
        assert threads() == {2}
        with one_thread(wanted=False):
            assert threads() == {2}


def test_the_first_one_who_leaves_changes_nothing_for_the_others():
    inside, leave = threading.Event(), threading.Event()

    @one_thread()
    def work():
        inside.set()
        leave.wait()

    worker = threading.Thread(target=work)
    with threadpool_limits(2, user_api="blas"):
        with one_thread():
            worker.start()
            inside.wait()
        assert threads() == {1}
        leave.set()
        worker.join()


def in_another_thread(work):
    """What it returns there."""
    found = []
    worker = threading.Thread(target=lambda: found.append(work()))
    worker.start()
    worker.join()
    return found[0]


def test_one_thread_in_another_thread():
    def work():
        with one_thread():
            with one_thread():
                inner = threads()
            return inner, threads()

    with threadpool_limits(2, user_api="blas"):
        before = in_another_thread(threads)
        assert in_another_thread(work) == ({1}, {1})
        assert threads() == before == {2}


@pytest.mark.parametrize("shape", [(64, 500, 64), (700, 33, 700), (300, 200, 400)])
def test_the_same_bits_in_every_thread(shape):
    """How a product is shared among threads decides the order of its sums."""
    m, k, n = shape
    random = np.random.default_rng(0)
    left, right = random.normal(size=(m, k)), random.normal(size=(k, n))
    multiply = one_thread()(lambda: left @ right)
    with threadpool_limits(2, user_api="blas"):
        assert np.array_equal(multiply(), in_another_thread(multiply))
