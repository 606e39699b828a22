"""What type checkers, `from tacit import *` and readers of signatures see of the package."""

from __future__ import annotations

import builtins
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest

import tacit

PACKAGE = Path(tacit.__file__).resolve().parents[1]

USER = """
from typing import Annotated

import tacit


@tacit.function
def price(ask: tacit.u32, bid: tacit.u32, cap: tacit.i64, on: tacit.bool) -> tacit.Number:
    deal = (bid >= ask) & on
    middle: tacit.Number = (ask + bid) // 2
    return tacit.max(tacit.where(deal, middle, 0), tacit.u32(7)) + tacit.min(cap.to(tacit.u32), 3)


@tacit.function
def total(mine: Annotated[list[tacit.Number], tacit.i32[3]], more: tacit.i32) -> tacit.Number:
    return tacit.sum(mine) + more


def run(rows: tacit.Intersection) -> list[str]:
    done = tacit.intersect(["a"], via="relay:7710", identity="a.key", peer="b.pub", security="malicious")
    made = tacit.evaluate(price, {"ask": 1}, listen="0.0.0.0:7700", proxy=None, timeout=3.0)
    print(made.result, rows.to_polars(), tacit.check(["a"]).reasons)
    return done.to_list()
"""


def test_a_users_code_passes_a_strict_type_checker(tmp_path) -> None:
    mypy = pytest.importorskip("mypy.api")
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nstrict = true\nmypy_path = {PACKAGE}\n")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "user.py"]
    said = subprocess.run(command, check=False, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert (said.returncode, said.stdout) == (0, ""), mypy
    # What is wrong is seen.
    (tmp_path / "user.py").write_text(USER.replace('"malicious"', '"honest"').replace("proxy=None", "prox=1"))
    said = subprocess.run(command, check=False, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert "honest" in said.stdout and "prox" in said.stdout, said.stdout


def test_lists_may_be_annotated_for_type_checkers() -> None:
    @tacit.function
    def total(mine: Annotated[list[tacit.Number], tacit.i32[3]], more: tacit.i32):
        return tacit.sum(mine) + more

    assert total([1, 2, 3], 4) == 10


def test_a_star_leaves_pythons_own_in_place() -> None:
    names: dict[str, object] = {}
    exec("from tacit import *", names)  # noqa: S102
    shadowed = [name for name in names if hasattr(builtins, name) and not name.startswith("__")]
    assert shadowed == [] and "intersect" in names and "u32" in names
    assert tacit.bool.width == 1 and tacit.max(tacit.u8(1), 2).type == tacit.u8


@pytest.mark.parametrize("job", ["intersect", "request", "evaluate", "ot", "vole"])
def test_how_to_reach_the_peer_is_in_every_signature(job: str) -> None:
    parameters = inspect.signature(getattr(tacit, job)).parameters
    reach = ["listen", "connect", "via", "identity", "peer", "proxy"]
    assert [name for name in parameters if name in reach] == reach
    assert {"session"} == {p.name for p in parameters.values() if p.kind is p.VAR_KEYWORD}
    for name, parameter in inspect.signature(getattr(tacit.Session, job)).parameters.items():
        if name != "self":
            assert parameters[name].default == parameter.default, name


def test_one_way_to_the_peer_is_wanted() -> None:
    with pytest.raises(tacit.UsageError, match="listen=, connect= and via="):
        tacit.intersect(["a"], listen="127.0.0.1:1", via="127.0.0.1:2")
    with pytest.raises(tacit.UsageError, match="identity="):
        tacit.intersect(["a"], connect="127.0.0.1:1", identity="a.key")
