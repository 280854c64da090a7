"""Small problem files that ask for much memory: the audit refuses them by what they declare, as the loader does."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot.audits.declaration import read_problem
from surefoot.audits.problem import Unreadable
from surefoot.errors import UnreadableFile
from surefoot.storage.archive import read_foreign
from tests.saved_problems import document_of, members_of, repack, template


def problem_file(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A saved problem with another header, its digest gone."""
    document = document_of(path)
    change(document)
    del document["digest"]
    repack(path, members_of(path) | {"header.json": json.dumps(document).encode()})
    return path


def test_a_compressed_problem_is_not_unfolded(tmp_path: Path) -> None:
    path, zeros = template().save(tmp_path / "problem.npz"), io.BytesIO()
    np.save(zeros, np.zeros(1 << 22))
    repack(path, members_of(path) | {"a1.npy": zeros.getvalue()}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1 << 17
    with pytest.raises(Unreadable, match="member is compressed"):
        read_problem(path)


def test_an_archive_of_another_package_unfolds_so_far_and_no_further(tmp_path: Path) -> None:
    path = tmp_path / "map.npz"
    np.savez_compressed(path, small=np.arange(3), large=np.zeros(1 << 23))
    assert path.stat().st_size < 1 << 17
    with pytest.raises(UnreadableFile, match=r"expands to too much.*67,108,864 are allowed"):
        read_foreign(path, ["small"])
    np.savez_compressed(path, small=np.arange(3))
    assert read_foreign(path, ["small"])[0].tolist() == [0, 1, 2]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(UnreadableFile, match=r"the archive is damaged.*map\.npz"):
        read_foreign(path, ["small"])


def test_arrays_that_layers_share_are_laid_out_once(tmp_path: Path) -> None:
    """3,000 layers of the same 20,000 edges: what they share is one object, and the rest has the loader's budget."""
    n = 20_000
    path = template(
        horizon=2,
        start=0,
        state_ptr=np.array([0, n]),
        pair_ptr=np.arange(n + 1),
        successors=np.zeros(n, np.int64),
        reward=np.zeros(n),
        cost_features=np.ones((n, 1)),
        fallback=np.zeros(1, np.int64),
    ).save(tmp_path / "problem.npz")

    def longer(document: dict[str, Any]) -> None:
        layer, layers = document["layers"][0], 3000
        document.update(horizon=layers + 1, layers=[layer] * layers, anchors=[None] * (layers + 1))

    problem_file(path, longer)
    read = read_problem(path)
    assert len(read.layers) == 3000
    for name in ("state_ptr", "pair_ptr", "successor", "x", "fallback"):
        assert len({id(getattr(layer, name)) for layer in read.layers}) == 1, name
    with pytest.raises(Unreadable, match="shared beyond the size of the file"):
        read_problem(problem_file(shared_seed(tmp_path / "wide.npz"), longer))


def shared_seed(path: Path) -> Path:
    """Many states, whose seed each layer lays out anew."""
    n = 1000
    return template(
        horizon=2,
        start=0,
        state_ptr=np.arange(n + 1),
        pair_ptr=np.arange(n + 1),
        successors=np.arange(n),
        reward=np.zeros(n),
        cost_features=np.ones((n, 1)),
        fallback=np.zeros(n, np.int64),
    ).save(path)
