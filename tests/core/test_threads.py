"""BLAS has one thread while it works for a model, and afterwards as many as before."""

import threading

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
