"""Who may use how many threads, and what is left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import surefoot as sf
from surefoot.threads import PARTS, in_ranges, on_threads, one_blas_thread, usable_threads


def blas() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_settings_survive_threads_that_plan_at_the_same_time() -> None:
    with one_blas_thread():
        pass  # everything is loaded
    before, seen = blas(), list[int]()

    def work() -> None:
        for _ in range(20):
            with one_blas_thread(), one_blas_thread():  # nested, as a plan within a plan would
                seen.extend(blas())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) == {1}
    assert blas() == before


def test_only_the_main_thread_uses_several() -> None:
    found: list[int] = []
    other = threading.Thread(target=lambda: found.append(usable_threads()))
    other.start()
    other.join()
    assert found == [1]
    assert usable_threads() >= 1


def test_parts_go_to_several_threads_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once; what somebody does of them begins no threads of its own."""
    monkeypatch.setattr("surefoot.threads.usable_threads", lambda: 3)
    together, begun, who, taking = threading.Barrier(3), list[int](), set[int](), threading.Lock()

    def parts() -> Iterator[int]:
        for part in range(200):
            begun.append(part)
            yield part

    def work(part: int) -> None:
        if part < 3:
            together.wait(60)  # all three are there
        own = list[int]()
        on_threads(range(50), lambda _: own.append(threading.get_ident()))
        in_ranges(50, True, lambda first, end: own.extend([threading.get_ident()] * (end - first)))
        assert own == [threading.get_ident()] * 100
        with taking:
            who.add(own[0])

    assert on_threads(parts(), work)
    assert begun == list(range(200))
    assert len(who) == 3
    whole = np.zeros(1000, np.int64)

    def count(first: int, end: int, of: Any) -> None:
        of[first:end] += 1

    in_ranges(len(whole), True, count, whole)  # the threads may be used again
    assert whole.tolist() == [1] * 1000


@pytest.mark.parametrize("threads", [1, 3])
def test_the_first_no_ends_the_work(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.threads.usable_threads", lambda: threads)
    begun = list[int]()

    def work(part: int) -> bool:
        begun.append(part)
        return part != 5

    assert not on_threads(iter(range(10**9)), work)
    assert max(begun) < 10**6  # others end soon


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("where", ["work", "parts"])
def test_an_error_ends_the_work(where: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.threads.usable_threads", lambda: threads)
    under_way, begun = list[int](), list[int]()

    def parts() -> Iterator[int]:
        yield from range(50)
        if where == "parts":
            raise ZeroDivisionError
        yield from range(50, 10**9)

    def work(part: int) -> None:
        begun.append(part)
        under_way.append(part)
        if where == "work" and part == 50:
            under_way.remove(part)
            raise ZeroDivisionError
        under_way.remove(part)

    with pytest.raises(ZeroDivisionError):
        on_threads(parts(), work)
    assert not under_way  # nobody is still at it
    assert max(begun) < 10**6
    assert on_threads([1, 2], lambda part: part > 0)


FORKED = """
import os
import surefoot as sf
from surefoot.estimate import kernels
from surefoot.plan import kernels as sweeps

kernels.WORTH_THREADS = sweeps.WORTH_THREADS = 1  # as a large problem would
problem = sf.worlds.make("thermal/testing").problem
sf.LsviNew(problem)
child = os.fork()
if child == 0:
    sf.LsviNew(problem)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_forked_child_plans_on_one_thread() -> None:
    """The pools of its parent are dead in it."""
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip() == "7", done.stderr


def test_plans_of_several_threads_are_those_of_one() -> None:
    problems = [sf.worlds.make("thermal/testing").problem, sf.worlds.make("ladder/testing").problem] * 3
    alone = [sf.LsviNew(problem).plan for problem in problems]
    together: dict[int, sf.Plan] = {}

    def plan(number: int) -> None:
        together[number] = sf.LsviNew(problems[number]).plan

    threads = [threading.Thread(target=plan, args=(number,)) for number in range(len(problems))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, one in enumerate(alone):
        two = together[number]
        assert all(map(np.array_equal, one.bounds.upper, two.bounds.upper))
        assert all(map(np.array_equal, one.values.value, two.values.value))


# --- ranges on threads ----------------------------------------------------------------------------------


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.threads.usable_threads", lambda: 2)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("n", [0, 1, 2 * PARTS - 1, 1000])
def test_ranges_make_up_the_whole_and_share_nothing(n: int) -> None:
    seen = np.zeros(n, np.int64)

    def count(first: int, end: int) -> None:
        seen[first:end] += 1

    in_ranges(n, True, count)
    assert (seen == 1).all()


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("of_main", [True, False])
def test_an_error_in_any_thread_is_raised_when_none_writes_any_more(of_main: bool) -> None:
    started, running = threading.Barrier(2, timeout=60), list[int]()

    def work(first: int, end: int) -> None:
        if first < 2:  # the first range of each thread
            started.wait()
        if _is_main() is of_main:
            raise ValueError("broken")
        running.append(first)
        time.sleep(0.02)
        running.remove(first)

    with pytest.raises(ValueError, match="broken"):
        in_ranges(2 * PARTS, True, work)
    assert not running


AT_THE_END = """
import atexit
import surefoot as sf
from surefoot import threads
from surefoot.estimate import kernels
from surefoot.plan import kernels as sweeps

kernels.WORTH_THREADS = sweeps.WORTH_THREADS = 1  # as a large problem would
threads.usable_threads = lambda: 2
problem = sf.worlds.make("thermal/testing").problem
sf.LsviNew(problem)
atexit.register(lambda: print(sf.LsviNew(problem).plan.n_certified() > 0))
"""


def test_while_the_interpreter_ends_plans_are_made_without_more_threads() -> None:
    done = subprocess.run([sys.executable, "-c", AT_THE_END], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip() == "True", done.stderr


@pytest.mark.usefixtures("two_threads")
def test_where_the_system_gives_no_thread_one_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    seen = np.zeros(100, np.int64)

    def count(first: int, end: int) -> None:
        seen[first:end] += 1

    monkeypatch.setattr(threading.Thread, "start", refused)
    monkeypatch.setattr("surefoot.threads._pool", lambda threads: ThreadPoolExecutor(threads))
    in_ranges(100, True, count)
    assert (seen == 1).all()


@pytest.mark.usefixtures("two_threads")
def test_after_an_interruption_no_further_range_is_begun() -> None:
    started, begun = threading.Barrier(2, timeout=60), list[int]()

    def work(first: int, end: int) -> None:
        begun.append(first)
        if first < 2:
            started.wait()
        if _is_main():
            raise KeyboardInterrupt
        time.sleep(0.3)

    with pytest.raises(KeyboardInterrupt):
        in_ranges(2 * PARTS, True, work)
    assert len(begun) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals to a thread")
@pytest.mark.usefixtures("two_threads")
def test_an_interruption_while_others_are_waited_for_is_raised_when_they_are_done() -> None:
    main, started, done = threading.main_thread().ident, threading.Barrier(2, timeout=60), list[bool]()
    assert main is not None

    def work(first: int, end: int) -> None:
        if first < 2:
            started.wait()
        if not _is_main() and not done:
            time.sleep(0.3)  # by now the main thread has done all the other ranges
            for _ in range(2):  # somebody is impatient
                signal.pthread_kill(main, signal.SIGINT)
                time.sleep(0.3)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        in_ranges(2 * PARTS, True, work)
    assert done
