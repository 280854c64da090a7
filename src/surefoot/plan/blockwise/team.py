"""The processes of a cluster that make plans together: who owns what, and how they are asked.

Each worker holds one block, an actor, which receives its part of the problem once. A question goes to all blocks at
once, directly to the workers, and all answers are awaited: a *barrier*. A worker that dies takes its block with it;
then all blocks are made again on the remaining workers and the plan is restarted, with the same result bit for bit.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from surefoot.clusters import MOST_DEATHS, Cluster
from surefoot.errors import SurefootError
from surefoot.model.graph import LayeredGraph
from surefoot.model.layer import Layer
from surefoot.plan.blockwise.block import Block, Extent, ProblemFacts, Range, extents

PIECE = 1 << 26  # bytes that are sent at a time
PATIENCE = 60.0  # seconds for a first worker
NOTICE = 0.2  # seconds for the scheduler to notice a dead worker, doubled each time

Answer = TypeVar("Answer")


class BlockLost(Exception):
    """A worker died, and its block with it."""


@dataclass
class Cost:
    """The time and bytes that questions of one kind have taken so far."""

    barriers: int = 0
    seconds: float = 0.0  # until the last answer arrived
    working: float = 0.0  # of these, the slowest block at work
    sent: int = 0  # bytes, to all blocks together
    received: int = 0


@dataclass(eq=False)
class Member:
    """One block, and the worker that holds it."""

    actor: Any
    extents: Sequence[Extent]  # by step
    next: list[Range] = field(default_factory=list)  # by step: states that its own may lead to


class Team:
    """All blocks of a problem."""

    def __init__(self, graph: LayeredGraph, declared: ProblemFacts, cluster: Cluster) -> None:
        self._graph, self._declared, self._cluster = graph, declared, cluster
        self._stack = contextlib.ExitStack()
        self._closed = weakref.finalize(self, self._stack.close)
        self.members: list[Member] = []
        self.costs: dict[str, Cost] = {}
        self._begin()

    def close(self) -> None:
        """Let the workers go."""
        self._closed()

    # --- blocks -----------------------------------------------------------------------------------------

    def _begin(self) -> None:
        try:
            self._client = self._stack.enter_context(self._cluster.connect())
            self._client.direct_to_workers = True  # the scheduler would be a bottleneck
            self._client.wait_for_workers(max(1, self._cluster.workers), timeout=PATIENCE)
        except (OSError, TimeoutError) as error:
            fix = "Start scheduler and workers, or leave out on=."
            raise SurefootError(
                "the cluster does not answer", where=self._cluster.name, got=str(error), fix=fix
            ) from error
        self._build()

    def _build(self) -> None:
        """Make all blocks, one on each worker, and send each what it owns."""
        self.members.clear()  # actors without a reference are released
        with self._talking():
            self._client.wait_for_workers(1, timeout=PATIENCE)
            workers = sorted(self._client.scheduler_info(n_workers=-1)["workers"])
            options = {"actor": True, "pure": False}
            begun = [self._client.submit(Block, self._declared, workers=[each], **options) for each in workers]
            by_step = [extents(layer, len(workers)) for layer in self._graph.layers]
            for future, own in zip(begun, zip(*by_step, strict=True), strict=True):
                self.members.append(Member(future.result(timeout=PATIENCE), own))
            for member in self.members:
                self._send_steps(member)

    def _send_steps(self, member: Member) -> None:
        """Send a block its part of every step; arrays that steps share are sent once."""
        sent = set[str]()
        for layer, extent in zip(self._graph.layers, member.extents, strict=True):
            names = {}
            for part, (array, own) in _arrays(layer, extent).items():
                names[part] = f"{id(array):x}-{own.first}-{own.end}"
                if names[part] not in sent:
                    sent.add(names[part])
                    for at, piece in _pieces(array, own):
                        member.actor.receive(names[part], piece, at, own.size).result()
            member.next.append(member.actor.begin_step(extent, names).result())

    # --- questions --------------------------------------------------------------------------------------

    def ask(self, question: str, words: Iterable[Sequence[Any]]) -> list[Any]:
        """Ask every block a question, with arguments for each. → all answers, in the order of the blocks' states."""
        cost, began = self.costs.setdefault(question, Cost()), time.perf_counter()
        with self._talking():
            asked = []
            for member, own in zip(self.members, words, strict=True):
                asked.append(getattr(member.actor, question)(*own))
                cost.sent += _bytes(own)
            answers = [future.result() for future in asked]
        cost.barriers += 1
        cost.seconds += time.perf_counter() - began
        cost.working += max(seconds for seconds, _ in answers)
        cost.received += sum(_bytes(answer) for _, answer in answers)
        return [answer for _, answer in answers]

    def together(self, work: Callable[[], Answer]) -> Answer:
        """The result of work that asks questions; restarted on the remaining workers when one dies."""
        for deaths in range(MOST_DEATHS + 1):
            try:
                if deaths:
                    time.sleep(NOTICE * 2**deaths)  # or every retry would send blocks to dead workers
                    self._build()
                return work()
            except BlockLost as error:
                if deaths == MOST_DEATHS:
                    fix = "Give the workers more memory, or use more of them."
                    got = f"workers died {MOST_DEATHS + 1} times: {error.__cause__}"
                    raise SurefootError("no plan could be made", where=self._cluster.name, got=got, fix=fix) from error
        raise AssertionError

    @contextlib.contextmanager
    def _talking(self) -> Iterator[None]:
        """Surrounds calls of actors: Dask reports a lost actor in several ways."""
        from distributed.scheduler import KilledWorker

        try:
            with self._client.as_current():
                yield
        except (OSError, TimeoutError, KilledWorker, CancelledError) as error:
            raise BlockLost from error
        except (ValueError, RuntimeError) as error:
            if "Actor" not in str(error):
                raise
            raise BlockLost from error


def _arrays(layer: Layer, extent: Extent) -> dict[str, tuple[NDArray[Any], Range]]:
    """What a block needs from a step, by the layer's field: the array, and which of its entries."""
    found: dict[str, tuple[Any, Range]] = {
        "state_ptr": (layer.state_ptr, Range(extent.states.first, extent.states.end + 1)),
        "pair_ptr": (layer.pair_ptr, Range(extent.pairs.first, extent.pairs.end + 1)),
        "successor": (layer.successor, extent.edges),
        "reward": (layer.reward, extent.pairs),
        "table": (layer.cost_features, extent.rows),
        "fallback": (layer.fallback, extent.states),
        "forbidden": (layer.forbidden, extent.states),
    }
    if layer.transition_features is not layer.cost_features:
        found["transition_features"] = (layer.transition_features, extent.edges)
    if not layer.per_triplet:
        found["row_ptr"] = (layer.row_ptr, Range(extent.pairs.first, extent.pairs.end + 1))
    return found


def _pieces(array: NDArray[Any], own: Range) -> Iterator[tuple[int, NDArray[Any]]]:
    """(destination, entries) until everything is sent; an empty array is one piece too."""
    step = max(1, PIECE // max(1, array[:1].nbytes))
    for at in range(0, max(1, own.size), step):
        yield at, np.array(array[own.first + at : min(own.end, own.first + at + step)])


def _bytes(value: Any) -> int:
    """Of the arrays in it."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    return sum(map(_bytes, value)) if isinstance(value, (tuple, list)) else 0
