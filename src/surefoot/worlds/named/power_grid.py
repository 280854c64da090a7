"""The grid behind the power world: a standard case, its line flows without and with losses, and what a picture needs.

An *operating point* is (demand factor, local generation in MW, storage output in MW, negative while charging). The
case's loads are multiplied by the factor, its generators run as the case says, and its reference generator, a cheap one
far away, supplies the rest. For a network of lines with reactance X at voltage V, and injections p (MW) at the buses,

    flow = PTDF p,    PTDF = diag(V²/X) C (Cᵀ diag(V²/X) C)⁻¹    (C: lines × buses, without the reference bus)

is the *DC flow*, which every textbook on power systems derives: linear in p, without losses or reactive power. The
*AC flow* comes from pandapower's Newton solver: active power entering each line at its first bus.

pandapower is imported only when a case is read.
"""

from __future__ import annotations

import copy
import functools
import importlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.checks import needed
from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray, IntArray, freeze

__all__ = ["PowerGrid", "read_grid"]


@dataclass(frozen=True, eq=False)
class PowerGrid:
    """One case with a local generator and a storage; n buses, L lines, every array read-only."""

    case: str
    buses: tuple[str, ...]  # (n,) the case's own names
    coordinates: FloatArray  # (n, 2) for a picture, in no unit
    ends: IntArray  # (L, 2) bus indices; a positive flow goes from the first to the second
    rating: FloatArray  # (L,) MW
    ptdf: FloatArray  # (L, n) MW per MW, zero at the reference bus
    demand: FloatArray  # (n,) MW at factor 1
    generation: FloatArray  # (n,) MW that is always on; the reference generator's is what is missing
    reference: int  # bus indices
    local: int
    storage: int

    @property
    def lines(self) -> tuple[str, ...]:
        """(L,) such as ``"1-5"``, by the names of its buses."""
        return tuple(f"{self.buses[a]}-{self.buses[b]}" for a, b in self.ends.tolist())

    def injections(self, points: FloatArray) -> FloatArray:
        """(N, n) MW put into each bus at operating points (N, 3); the reference bus balances the rest."""
        points = np.asarray(points, dtype=np.float64)
        p = self.generation - points[:, :1] * self.demand
        p[:, self.local] += points[:, 1]
        p[:, self.storage] += points[:, 2]
        p[:, self.reference] -= p.sum(axis=1)
        return p

    def dc_loading(self, points: FloatArray) -> FloatArray:
        """(N, L) DC flow / rating."""
        loading: FloatArray = self.injections(points) @ self.ptdf.T / self.rating
        return loading

    def ac_loading(self, points: FloatArray) -> FloatArray:
        """(N, L) active power at each line's first bus / rating, solved by pandapower, each distinct point once."""
        rows = [tuple(row) for row in np.asarray(points, dtype=np.float64).tolist()]
        return np.array([_ac_flow(self.case, self.local, self.storage, *row) for row in rows]) / self.rating

    def sensitivities(self) -> FloatArray:
        """(L, 4) change of loading per MW of: constant generation, total demand, local generation, storage output."""
        columns = [
            self.ptdf @ self.generation / self.generation.sum(),
            -self.ptdf @ self.demand / self.demand.sum(),
            self.ptdf[:, self.local],
            self.ptdf[:, self.storage],
        ]
        result: FloatArray = np.stack(columns, axis=1) / self.rating[:, None]
        return result


def read_grid(case: str, *, local: str, storage: str) -> PowerGrid:
    """A case of ``pandapower.networks`` made of lines alone; the two buses by their names in the case."""
    net = _case(case)
    if len(net.trafo) or len(net.trafo3w) or len(net.impedance) or len(net.ext_grid) != 1:
        raise InvalidInput("the case must consist of lines and have one reference generator", got=repr(case))
    buses = tuple(str(name) for name in net.bus.name)
    place = {bus: i for i, bus in enumerate(net.bus.index.tolist())}
    line = net.line
    ends = np.array([[place[a], place[b]] for a, b in zip(line.from_bus, line.to_bus, strict=True)])
    volts = net.bus.vn_kv.to_numpy(np.float64)[ends[:, 0]]  # kV: V²/Ω is MW
    reactance = (line.x_ohm_per_km * line.length_km / line.parallel).to_numpy(np.float64)
    reference = place[int(net.ext_grid.bus.iloc[0])]
    return PowerGrid(
        case=case,
        buses=buses,
        coordinates=freeze(np.array([json.loads(geo)["coordinates"] for geo in net.bus.geo])),
        ends=freeze(ends),
        rating=freeze(np.sqrt(3.0) * volts * (line.max_i_ka * line.df * line.parallel).to_numpy(np.float64)),
        ptdf=freeze(_ptdf(ends, volts**2 / reactance, len(buses), reference)),
        demand=freeze(_by_bus(net.load, place)),
        generation=freeze(_by_bus(net.gen, place)),
        reference=reference,
        local=buses.index(local),
        storage=buses.index(storage),
    )


def _ptdf(ends: IntArray, susceptance: FloatArray, n: int, reference: int) -> FloatArray:
    """(L, n): see the module docstring. ``susceptance`` (L,) in MW per radian."""
    incidence = np.zeros((len(ends), n))
    rows = np.arange(len(ends))
    incidence[rows, ends[:, 0]], incidence[rows, ends[:, 1]] = 1.0, -1.0
    others = np.arange(n) != reference
    to_flow = susceptance[:, None] * incidence[:, others]
    result = np.zeros((len(ends), n))
    result[:, others] = np.linalg.solve(incidence[:, others].T @ to_flow, to_flow.T).T
    return result


def _by_bus(table: Any, place: dict[int, int]) -> FloatArray:
    """(n,) MW of a table of loads or generators, summed at each bus."""
    total = np.zeros(len(place))
    for bus, p in zip(table.bus, table.p_mw, strict=True):
        total[place[int(bus)]] += float(p)
    return total


@functools.lru_cache(maxsize=8)
def _case(name: str) -> Any:
    """A case as pandapower's own file holds it. Read-only by agreement: whoever changes it copies it first."""
    return getattr(_pandapower().networks, name)()


@functools.lru_cache(maxsize=8)
def _solvable(case: str, local: int, storage: int) -> Any:
    """A copy of the case with the local generator and the storage connected."""
    pandapower, net = _pandapower(), copy.deepcopy(_case(case))
    for bus in (local, storage):
        pandapower.create_sgen(net, net.bus.index[bus], p_mw=0.0)
    return net


@functools.lru_cache(maxsize=100_000)
def _ac_flow(case: str, local: int, storage: int, factor: float, generation: float, output: float) -> FloatArray:
    """(L,) MW. Reactive demand grows with the factor; local generation and storage supply none."""
    net = _solvable(case, local, storage)
    net.load.scaling = factor
    net.sgen.p_mw = [generation, output]
    _pandapower().runpp(net, numba=False, init="flat", tolerance_mva=1e-9)  # flat: whatever was solved before
    return freeze(net.res_line.p_from_mw.to_numpy(np.float64).copy())


def _pandapower() -> Any:
    package = needed("pandapower", "the power world", "'surefoot[power]'")
    importlib.import_module("pandapower.networks")
    return package
