"""Correlations, interruptions, leaks, and the package as a whole."""

from __future__ import annotations

import doctest
import gc
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import numpy
import pytest
from parties import free_address, party

import tacit

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("kind", ["rot", "cot"])
def test_transfers_are_arrays_that_fit(kind: str, tmp_path) -> None:
    address, file = free_address(), str(tmp_path / "sender.npz")
    code = """
    import numpy
    made = tacit.ot(5000, role="sender", kind=kind, listen=address)
    numpy.savez(file, **{name: made[name] for name in made.names()})
    """
    with party(code, address=address, kind=kind, file=file) as peer:
        made = tacit.ot(5000, role="receiver", kind=kind, connect=address)
        peer.end()
    theirs = numpy.load(file)
    chosen = made.u[:, None] == 1
    if kind == "rot":
        assert (numpy.where(chosen, theirs["m1"], theirs["m0"]) == made.m).all()
    else:
        assert (numpy.where(chosen, theirs["v"] ^ theirs["delta"], theirs["v"]) == made.w).all()
    assert made.u.dtype == numpy.uint8 and 2000 < made.u.sum() < 3000
    with pytest.raises(AttributeError):
        made.nothing


# The first and second messages, as a party's own words make them.
OWN = {
    "str": '(["no", "", "Zürich"], ["yes", "a longer one", "0"])',
    "bytes": '([b"no", b"", b"\\0"], [b"yes", b"a longer one", b"0\\0"])',
    "bytes of one length": "(numpy.arange(30, dtype='u1').reshape(3, 10), numpy.full((3, 10), 7, dtype='u1'))",
    "blocks": "(numpy.arange(6, dtype='u8').reshape(3, 2), numpy.full((3, 2), 7, dtype='u8'))",
}


@pytest.mark.parametrize("form", OWN)
def test_messages_and_choices_of_ones_own(form: str) -> None:
    address, choices = free_address(), [1, 0, 1]
    code = f"import numpy; tacit.ot(role='sender', messages={OWN[form]}, listen=address)"
    with party(code, address=address) as peer:
        made = tacit.ot(role="receiver", choices=numpy.array(choices), connect=address)
        peer.end()
    pair = eval(OWN[form])
    wanted = [pair[choice][i] for i, choice in enumerate(choices)]
    assert made.u.tolist() == choices and len(made.m) == 3
    assert all(numpy.array_equal(got, want) for got, want in zip(made.m, wanted, strict=True))
    assert made.m.dtype == getattr(pair[0], "dtype", object)


def test_drawn_messages_and_own_ones_that_do_not_serve() -> None:
    address = free_address()
    code = "made = tacit.ot(100, role='sender', kind='ot', listen=address); tell(made.m1.tolist())"
    with party(code, address=address) as peer:
        made = tacit.ot(role="receiver", choices=[1] * 100, connect=address)
        (theirs,) = peer.end()
    assert made.m.tolist() == theirs
    with party(
        "tacit.ot(role='sender', messages=(['x' * 100], ['']), listen=address)", address=address
    ) as peer:
        with pytest.raises(tacit.UsageError, match="100 bytes, more than the 10 accepted"):
            tacit.ot(role="receiver", choices=[1], max_message=10, connect=address)
    wrong = [
        ({"role": "receiver", "messages": ([], [])}, "sender's"),
        ({"role": "sender", "choices": [1]}, "receiver's"),
        ({"role": "sender", "messages": (["a"], [])}, "1 in the first, 0 in the second"),
        ({"role": "sender", "messages": (["a"], [b"a"])}, "two lists of str or of bytes"),
        ({"role": "sender", "messages": (numpy.zeros((2, 3), "u8"),) * 2}, "one shape"),
        ({"role": "sender", "messages": (["a"], ["b"]), "n": 2}, "2, and there are 1"),
        ({"role": "sender", "messages": (["a"], ["b"]), "kind": "rot"}, "go with"),
        ({"role": "receiver", "choices": [2]}, "0 or 1"),
        ({"role": "receiver"}, "number of transfers"),
    ]
    for given, words in wrong:
        with pytest.raises(tacit.UsageError, match=words):
            tacit.ot(**given, connect="127.0.0.1:1")  # type: ignore[arg-type]


def multiply(a: int, b: int) -> int:
    """In GF(2^128) modulo x^128 + x^7 + x^2 + x + 1."""
    product = 0
    for bit in range(128):
        if b >> bit & 1:
            product ^= a << bit
    for bit in reversed(range(128, 256)):
        if product >> bit & 1:
            product ^= (1 << bit) ^ (0x87 << (bit - 128))
    return product


def test_vole_holds_in_the_field(tmp_path) -> None:
    address, file = free_address(), str(tmp_path / "sender.npz")
    code = """
    import numpy
    made = tacit.vole(3000, role="sender", listen=address)
    numpy.savez(file, v=made.v, delta=made.delta)
    """
    with party(code, address=address, file=file) as peer:
        made = tacit.vole(3000, role="receiver", connect=address)
        peer.end()
    theirs = numpy.load(file)

    def number(words):
        return int(words[0]) | int(words[1]) << 64

    delta = number(theirs["delta"])
    for i in [0, 1, 1500, 2999]:
        assert number(made.w[i]) == number(theirs["v"][i]) ^ multiply(number(made.u[i]), delta)


@pytest.mark.parametrize(("field", "prime"), [("p61", 2**61 - 1), ("p128", 2**128 - 159)])
def test_vole_over_primes(field: str, prime: int) -> None:
    address = free_address()
    code = """
    made = tacit.vole(500, role="sender", field=field, listen=address, security="semi-honest")
    tell([made.delta.tolist(), made.v.tolist()])
    """
    with party(code, address=address, field=field) as peer:
        made = tacit.vole(500, role="receiver", field=field, connect=address, security="semi-honest")
        ((delta, v),) = peer.end()

    def number(words):
        return int(words) if field == "p61" else int(words[0]) | int(words[1]) << 64

    delta = number(delta[0] if field == "p61" else delta)
    for ours, theirs, w in zip(made.u, v, made.w, strict=True):
        assert number(w) == (number(theirs) + number(ours) * delta) % prime
    with pytest.raises(tacit.UsageError, match="semi-honest"):
        tacit.vole(1, role="sender", field=field, connect="127.0.0.1:1")


@pytest.mark.parametrize("of", [4, 256])
def test_one_of_several(of: int) -> None:
    address = free_address()
    code = "made = tacit.ot(300, role='sender', of=of, listen=address); tell(made.m.tolist())"
    with party(code, address=address, of=of) as peer:
        made = tacit.ot(300, role="receiver", of=of, connect=address)
        (messages,) = peer.end()
    assert made.u.max() < of and len(set(made.u.tolist())) > of // 4
    assert [messages[i][choice] for i, choice in enumerate(made.u)] == made.m.tolist()
    with pytest.raises(tacit.UsageError, match="2, 4, 16 or 256"):
        tacit.ot(1, role="sender", of=3, connect="127.0.0.1:1")


def shared(count: int, keep: str = "a b c", **asked: object) -> tuple[tacit.Transfers, dict]:
    """Our shares of triples, and the peer's as arrays."""
    address = free_address()
    code = """
    made = tacit.triples(count, listen=address, **asked)
    tell({name: made[name].tolist() for name in keep.split()})
    """
    with party(code, address=address, count=count, asked=asked, keep=keep) as peer:
        made = tacit.triples(count, connect=address, **asked)
        (theirs,) = peer.end()
    return made, {name: numpy.array(theirs[name], dtype=made[name].dtype) for name in theirs}


@pytest.mark.parametrize("count", [1, 7, 8, 65])
def test_triples_of_bits_and_words(count: int) -> None:
    made, theirs = shared(count, kind="bits", security="semi-honest")
    assert made.a.dtype == numpy.uint8 and made.names() == ["a", "b", "c"] and made.a.max() < 2
    assert ((made.a ^ theirs["a"]) & (made.b ^ theirs["b"]) == made.c ^ theirs["c"]).all()
    made, theirs = shared(count, kind="words", security="semi-honest", protocol="kos")
    assert made.c.dtype == numpy.uint64 and made.protocol == "kos"
    assert ((made.a + theirs["a"]) * (made.b + theirs["b"]) == made.c + theirs["c"]).all()


@pytest.mark.parametrize(("field", "prime"), [("p61", 2**61 - 1), ("p128", 2**128 - 159)])
def test_triples_over_primes(field: str, prime: int) -> None:
    made, theirs = shared(40, kind="field", field=field, security="semi-honest")

    def number(words) -> int:
        return int(words) if field == "p61" else int(words[0]) | int(words[1]) << 64

    a, b, c = (
        [number(x) + number(y) for x, y in zip(made[name], theirs[name], strict=True)] for name in "abc"
    )
    assert all((x * y - z) % prime == 0 for x, y, z in zip(a, b, c, strict=True))
    assert all(number(x) < prime for name in "abc" for x in made[name])


def test_triples_over_gf128() -> None:
    made, theirs = shared(20, kind="field", security="semi-honest")

    def number(words) -> int:
        return int(words[0]) | int(words[1]) << 64

    def multiply(a: int, b: int) -> int:
        product = 0
        for i in range(128):
            if b >> i & 1:
                product ^= a << i
        for i in range(254, 127, -1):
            if product >> i & 1:
                product ^= (1 << 128 | 0x87) << (i - 128)
        return product

    for i in range(20):
        a, b, c = (number(made[name][i] ^ theirs[name][i]) for name in "abc")
        assert multiply(a, b) == c


def test_triples_with_macs() -> None:
    made, theirs = shared(100, keep="a b c delta mac_a key_a mac_c key_c", kind="bits")
    assert made.protocol == "authenticated"
    assert ((made.a ^ theirs["a"]) & (made.b ^ theirs["b"]) == made.c ^ theirs["c"]).all()
    for name in "ac":
        bits = made[name][:, None].astype(numpy.uint64)
        assert (made[f"mac_{name}"] == theirs[f"key_{name}"] ^ bits * theirs["delta"]).all()
        bits = theirs[name][:, None].astype(numpy.uint64)
        assert (theirs[f"mac_{name}"] == made[f"key_{name}"] ^ bits * made.delta).all()


def test_triples_that_are_not_made() -> None:
    for asked, said in [
        ({"kind": "words"}, "semi-honest"),
        ({"kind": "nibbles"}, "bits, words, field"),
        ({"kind": "bits", "field": "p61"}, "kind field"),
        ({"kind": "field", "field": "gf4", "security": "semi-honest"}, "gf128, p61, p128"),
    ]:
        with pytest.raises(tacit.UsageError, match=said):
            tacit.triples(1, connect="127.0.0.1:1", **asked)


WAITS = """
import sys, time, tacit
print("ready", flush=True)
try:
    tacit.intersect(["a"], **{how})
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("how", ["listening", "connecting"])
def test_an_interruption_is_heard_at_once(how: str) -> None:
    address = free_address()
    arguments = {"listen" if how == "listening" else "connect": address, "wait": 60}
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS.format(how=arguments)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    assert time.monotonic() - start < 1, "0.2 s, and room for a busy machine"
    assert process.wait(10) == 0
    process.stdout.close()


def test_an_interruption_in_the_middle_tells_the_peer() -> None:
    """Over a slow link: the child is interrupted while a million keys pass, and its peer sees a clear end."""
    address = free_address()
    code = """
    import os, signal, threading, time
    keys = [str(i) for i in range(300_000)]
    steps = []
    def interrupt():
        while not steps:
            time.sleep(0.01)
        tell(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt).start()
    try:
        tacit.intersect(keys, listen=address, link="20/5", progress=steps.append)
    except KeyboardInterrupt:
        tell(time.monotonic())
    """
    with party(code, address=address) as peer:
        with pytest.raises(tacit.PeerError, match="closed the connection|was lost|was interrupted"):
            tacit.intersect([str(i) for i in range(300_000)], connect=address, result="peer", link="20/5")
        asked, ended = peer.end()
    assert ended - asked < 1


def test_the_interpreter_goes_on_while_a_job_computes() -> None:
    address = free_address()
    ticks, stop = [], threading.Event()

    def tick() -> None:
        while not stop.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    keys = [str(i) for i in range(400_000)]
    with party(
        "tacit.intersect([str(i) for i in range(400_000)], listen=address, result='peer')", address=address
    ):
        start = time.monotonic()
        tacit.intersect(keys, connect=address)
        end = time.monotonic()
    stop.set()
    thread.join()
    during = [at for at in ticks if start < at < end]
    assert len(during) > (end - start) / 0.01 / 10, "the lock is free most of the time"


def resident() -> int:
    """Bytes that the process has in memory."""
    text = Path("/proc/self/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    assert found
    return int(found[1]) * 1024


def test_a_hundred_runs_leave_nothing_behind() -> None:
    code = """
    for _ in range(110):
        tacit.intersect([str(i) for i in range(500)], listen=address, result="peer")
    """
    address = free_address()
    keys = [str(i) for i in range(250, 750)]
    with party(code, address=address) as peer:
        for _ in range(10):
            tacit.intersect(keys, connect=address)
        gc.collect()
        tracemalloc.start()
        before, memory, files = tracemalloc.take_snapshot(), resident(), len(os.listdir("/proc/self/fd"))
        threads = threading.active_count()
        for _ in range(100):
            assert len(tacit.intersect(keys, connect=address)) == 250
        gc.collect()
        after = tracemalloc.take_snapshot()
        tracemalloc.stop()
        peer.end()
    ours = [one for one in after.compare_to(before, "filename") if "tacit" in one.traceback[0].filename]
    assert sum(one.size_diff for one in ours) < 50_000
    assert resident() - memory < 20 << 20
    assert len(os.listdir("/proc/self/fd")) <= files + 2
    assert threading.active_count() <= threads + 1


def test_every_example_of_the_docstrings_runs() -> None:
    import tacit._jobs
    import tacit._number

    for module in [tacit, tacit._jobs, tacit._number]:
        result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
        assert result.failed == 0
    assert doctest.testmod(tacit._jobs).attempted > 5


def test_everything_public_is_documented_and_errors_know_no_options() -> None:
    for name in tacit.__all__:
        thing = getattr(tacit, name)
        if callable(thing):
            assert (thing.__doc__ or "").strip(), name
    sources = "".join(path.read_text() for path in (ROOT / "python/tacit").glob("*.py"))
    assert not re.search(r"[\"' ]--[a-z]", sources)


def test_the_import_is_quick() -> None:
    def seconds(code: str) -> float:
        """Of the processor, which a busy machine does not stretch as it does those of the clock."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    least = min(seconds("import tacit") for _ in range(5)) - min(seconds("pass") for _ in range(5))
    assert least < 0.1
    loaded = "import sys, tacit; sys.exit(any(name in sys.modules for name in ['numpy', 'tqdm', 'pyarrow', 'pandas']))"
    assert subprocess.run([sys.executable, "-c", loaded], check=False).returncode == 0


@pytest.mark.parametrize(
    "call", ["ot(10, role='sender'", "vole(10, role='sender'", "triples(10, kind='bits'"]
)
def test_without_numpy_transfers_fail_as_an_import_does(call: str) -> None:
    """Nobody listens: what is missing is told before anybody is called."""
    code = f"import sys; sys.modules['numpy'] = None; import tacit; tacit.{call}, connect='127.0.0.1:9')"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=20
    )
    last = said.stderr.strip().splitlines()[-1]
    assert said.returncode == 1 and last.startswith("ModuleNotFoundError"), said.stderr


def test_the_three_lines_of_the_page_run() -> None:
    page = (ROOT / "docs/python.md").read_text()
    code = page.split("```python\n")[1].split("```")[0]
    assert len(code.splitlines()) == 3
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "['bob']\n"
