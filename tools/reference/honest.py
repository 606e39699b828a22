"""Runs against the command that keep to the pages, and the vectors."""

import json
import subprocess
import sys

import numpy as np

import blocks as B
import circuit
import command
import kos
import link
import psi
import softspoken
import vectors
import wire
import yao

WORDS = {psi.ME: "me", psi.PEER: "peer", psi.BOTH: "both"}
KEY, BLOCK = 0x000102030405060708090A0B0C0D0E0F, 0x00112233445566778899AABBCCDDEEFF
# FIPS 197, appendix C.1.
ENCRYPTED = 0x69C4E0D86A7B0430D8CDB78070B4C55A


def ended_well(peer):
    code, result, said = peer.end()
    assert code == 0, (code, said)
    return result


def stored():
    return json.loads((command.ROOT / "docs" / "wire" / "vectors.json").read_text())


def test_the_pages_vectors_of_primitives_and_base_ots():
    assert stored()["primitives"] == vectors.primitives()
    assert stored()["base ot"] == vectors.base()


def test_the_pages_vectors_of_transfers_and_of_yao():
    for name, run in vectors.RUNS.items():
        assert name.startswith("vole-psi") or stored()["runs"][name] == run(), name


def test_the_pages_vectors_of_intersections():
    # long_vectors.py has the other one.
    name = "vole-psi, malicious, both learn"
    assert set(stored()["runs"]) == set(vectors.RUNS)
    assert stored()["runs"][name] == vectors.RUNS[name]()


def party(channel, role, size=None, security="malicious"):
    """This side of KOS, or of SoftSpoken with groups of `size` bits."""
    family, more = (kos, ()) if size is None else (softspoken, (size,))
    found = (family.Sender if role == "sender" else family.Receiver)(channel, *more)
    return found if security == "malicious" else kos.Iknp(found)


def way(size):
    """The command's words for the same."""
    return {} if size is None else {"protocol": "softspoken", "code": f"groups-{size}"}


def transfers(role, kind, count, listens, size=None, security="malicious"):
    """Both sides' shares: this side's, and the command's out of its file."""
    peer, job, terms = command.ot(role, kind, count, listens=listens, security=security, **way(size))
    with peer:
        channel = peer.channel
        wire.greet(channel, job, terms)
        sends = role == "sender"
        cot = party(channel, role, size, security)
        if kind == "cot":
            mine = cot.extend(channel, count)
        elif kind == "rot" or sends:
            rot = kos.Random(cot, sends)
            mine = np.arange(4 * count, dtype=np.uint64).reshape(-1, 2, 2)
            mine = rot.extend(channel, count) if kind == "rot" else mine
            if kind == "ot":
                kos.send_chosen(channel, rot, mine)
        else:
            choices = np.arange(count, dtype=np.uint8) % 3 % 2
            mine = choices, kos.receive_chosen(channel, kos.Random(cot, False), choices)
        wire.finish(channel)
        ended_well(peer)
        with np.load(peer.path("share.npz")) as share:
            return cot, mine, dict(share)


def check(role, kind, count, listens, size=None, security="malicious"):
    """A run whose shares must fit each other."""
    cot, mine, share = transfers(role, kind, count, listens, size, security)
    if kind != "cot":
        check_messages(role, mine, share)
    elif role == "sender":
        check_correlated(B.of_int(cot.delta), mine, share["w"])
    else:
        check_correlated(share["delta"], share["v"], mine)


def check_messages(role, mine, share):
    if role == "sender":
        pairs, choices, taken = mine, share["u"], share["m"]
    else:
        pairs, (choices, taken) = np.stack([share["m0"], share["m1"]], 1), mine
    each = np.arange(len(pairs))
    assert (pairs[each, choices] == taken).all() and len(pairs) == len(taken)
    assert (pairs[each, 1 - choices] != taken).any(1).all()


def test_correlated_ot_by_iknp():
    # More than one tile.
    for role, listens in (("sender", True), ("receiver", False)):
        peer, job, terms = command.ot(role, "cot", 9000, listens=listens, protocol="iknp", security="semi-honest")
        with peer:
            wire.greet(peer.channel, job, terms)
            cot = kos.Iknp(kos.Sender(peer.channel) if role == "sender" else kos.Receiver(peer.channel))
            mine = cot.extend(peer.channel, 9000)
            wire.finish(peer.channel)
            ended_well(peer)
            with np.load(peer.path("share.npz")) as share:
                if role == "sender":
                    check_correlated(B.of_int(cot.delta), mine, share["w"])
                else:
                    check_correlated(share["delta"], share["v"], mine)


def over_two_connections(role, size=None):
    peer, job, terms = command.ot(role, "rot", 601, listens=False, more="--threads 2", **way(size))
    with peer:
        first = peer.channel
        wire.greet(first, job, {**terms, "channels": "2"})
        second = wire.join("%s:%d" % first.sock.getpeername(), first.session, 1)
        cot = party(first, role, size)
        streams = [(first, cot, 301), (second, cot.fork(), 300)]
        mine = [kos.Random(cot, role == "sender").extend(channel, count) for channel, cot, count in streams]
        for channel, _, _ in streams:
            wire.finish(channel)
        ended_well(peer)
        joined = np.concatenate(mine) if role == "sender" else [np.concatenate(part) for part in zip(*mine)]
        with np.load(peer.path("share.npz")) as share:
            check_messages(role, joined, dict(share))


def test_transfers_over_two_connections():
    for role in ("sender", "receiver"):
        over_two_connections(role)


# Transfers for which both sides ask the link, where nobody named a protocol.
MANY = 100_000


def test_the_side_that_listens_picks_where_nobody_named_a_protocol():
    count = MANY
    for protocol, size in (("kos", None), ("softspoken", 4)):
        variant = f"code groups-{size}" if size else ""
        peer, job, terms = command.ot("sender", "cot", count, protocol="auto")
        with peer:
            wire.greet(peer.channel, *command.plan("cot", count))
            wire.pick(peer.channel, protocol.encode(), variant.encode())
            wire.finish(peer.channel)
            # The transfers have a session of their own.
            peer.channel = peer.accept()
            wire.greet(peer.channel, job, {**terms, "protocol": protocol, **way(size)})
            cot = party(peer.channel, "sender", size)
            v = cot.extend(peer.channel, count)
            wire.finish(peer.channel)
            assert ended_well(peer)["protocol"] == protocol
            with np.load(peer.path("share.npz")) as share:
                check_correlated(B.of_int(cot.delta), v, share["w"])


def test_the_command_measures_the_link_and_picks_where_it_listens():
    peer, _, _ = command.ot("sender", "cot", MANY, protocol="auto", listens=False)
    with peer:
        wire.greet(peer.channel, *command.plan("cot", MANY))
        protocol, _ = wire.picked(peer.channel)
        wire.finish(peer.channel)
        assert protocol in (b"kos", b"softspoken", b"silent", b"ferret", b"ferret-uni")


def check_correlated(delta, v, w):
    assert len(v) == len(w)
    assert (w == v ^ B.masked(B.lsb(w), np.broadcast_to(delta, v.shape))).all()
    # A choice that were always the same would pass the line above.
    assert 0 < int(B.lsb(w).sum()) < len(w)


def test_correlated_ot_with_the_command_as_receiver():
    # More than one batch, and no multiple of a block.
    check("sender", "cot", 65_500, True)


def test_correlated_ot_with_the_command_as_sender():
    check("receiver", "cot", 1000, False)


def test_random_ot_with_the_command_as_receiver():
    check("sender", "rot", 300, False)


def test_random_ot_with_the_command_as_sender():
    check("receiver", "rot", 300, True)


def test_chosen_ot_with_the_command_as_receiver():
    check("sender", "ot", 200, True)


def test_chosen_ot_with_the_command_as_sender():
    check("receiver", "ot", 200, False)


def test_softspoken_in_groups_of_two():
    # More batches than the receiver sends before it answers.
    check("sender", "cot", 5 * 65_408 + 1, False, 2)
    check("receiver", "cot", 5 * 65_408 + 1, True, 2)


def test_softspoken_in_groups_of_four():
    check("sender", "rot", 300, False, 4)
    # More than one batch.
    check("receiver", "cot", 65_500, True, 4)


def test_softspoken_in_groups_of_eight():
    # A last group of seven, and more than one tile.
    check("sender", "ot", 8500, True, 8)
    check("receiver", "ot", 200, False, 8)


def test_softspoken_over_two_connections():
    over_two_connections("sender", 4)
    over_two_connections("receiver", 8)


def test_softspoken_against_a_peer_that_is_semi_honest():
    # More than one tile.
    check("sender", "cot", 9000, True, 2, "semi-honest")
    check("receiver", "rot", 300, False, 4, "semi-honest")
    check("sender", "cot", 300, False, 8, "semi-honest")


# One of a text, one of a pad that is a stream, and one that is none.
TEXTS = {"short": ["", "a", "fifteen of them"], "long": ["", "Zürich", "x" * 5000]}


def test_texts_with_the_command_as_sender():
    for name, texts in TEXTS.items():
        pairs = [[texts[i % 3], texts[(i + 1) % 3]] for i in range(60)]
        table = "m0,m1\n" + "".join(f"{a},{b}\n" for a, b in pairs)
        more = "--messages DIR/m.csv"
        peer, job, terms = command.ot("receiver", "ot", 60, more=more, files={"m.csv": table})
        with peer:
            wire.greet(peer.channel, job, terms)
            rot = kos.Random(kos.Receiver(peer.channel), False)
            choices = np.arange(60, dtype=np.uint8) // 3 % 2
            form, rows = kos.receive_strings(peer.channel, rot, choices)
            wire.finish(peer.channel)
            ended_well(peer)
        taken = [bytes(row).rstrip(b"\0")[:-1].decode() for row in rows]
        assert (form, taken) == (3, [pair[choice] for pair, choice in zip(pairs, choices, strict=True)]), name


def test_texts_with_the_command_as_receiver():
    for name, texts in TEXTS.items():
        pairs = [[texts[i % 3], texts[(i + 1) % 3]] for i in range(60)]
        peer, job, terms = command.ot("sender", "ot", 60)
        with peer:
            wire.greet(peer.channel, job, terms)
            kos.send_texts(peer.channel, kos.Random(kos.Sender(peer.channel), True), pairs)
            wire.finish(peer.channel)
            ended_well(peer)
            with np.load(peer.path("share.npz")) as share:
                got = [message.decode() for message in share["m"]]
                assert got == [pair[choice] for pair, choice in zip(pairs, share["u"], strict=True)], name
                assert share["length"].tolist() == [len(text.encode()) for text in got], name


def intersect(mine, theirs, learns, security, listens, protocol="vole"):
    """This side's keys found, and those that the command wrote."""
    peer, job, terms = command.psi(WORDS[learns], theirs, security=security, listens=listens, protocol=protocol)
    with peer:
        wire.greet(peer.channel, job, terms)
        elements = [psi.element(key) for key in mine]
        found = psi.Run(
            peer.channel, elements, malicious=security == "malicious", learns=learns, auto=protocol == "auto"
        ).run()
        wire.finish(peer.channel)
        ended_well(peer)
        return None if found is None else [mine[at] for at in found], command.rows(peer)


def linked(mine, theirs, security, listens):
    """This side's identifiers, and those of the command by its keys."""
    peer, job, terms = command.link(theirs, security=security, listens=listens)
    with peer:
        wire.greet(peer.channel, job, terms)
        found, name = link.run(peer.channel, [psi.element(key) for key in mine], security == "malicious")
        wire.finish(peer.channel)
        assert ended_well(peer)["link_run"] == name
        rows = [row.split(",") for row in command.rows(peer)]
        return found, {key: identifier for identifier, key in rows}


def test_links_in_both_roles_and_levels():
    for security, listens in (("malicious", True), ("malicious", False), ("semi-honest", True)):
        mine, theirs = keys(0, 12), keys(5, 30)
        ours, of_command = linked(mine, theirs, security, listens)
        assert len({*ours, *of_command.values()}) == 35
        for key, identifier in zip(mine, ours, strict=True):
            assert (of_command.get(key) == identifier) == (key in theirs), key


def test_a_link_with_an_empty_set():
    ours, of_command = linked([], keys(0, 3), "malicious", True)
    assert ours == [] and len(set(of_command.values())) == 3


def keys(first, count):
    return [f"customer {number}" for number in range(first, first + count)]


def test_an_intersection_of_256_keys_for_the_command():
    mine, theirs = keys(0, 256), keys(100, 256)
    assert intersect(mine, theirs, psi.PEER, "malicious", True) == (None, keys(100, 156))


def test_an_intersection_of_256_keys_for_the_reference():
    mine, theirs = keys(0, 256), keys(100, 256)
    assert intersect(mine, theirs, psi.ME, "malicious", False) == (keys(100, 156), None)


def test_an_intersection_for_both_where_the_command_receives():
    # Of equal sets the side that listens receives.
    assert intersect(keys(0, 9), keys(4, 9), psi.BOTH, "malicious", False) == (keys(4, 5), keys(4, 5))


def test_an_intersection_for_both_where_the_reference_receives():
    assert intersect(keys(0, 9), keys(4, 30), psi.BOTH, "malicious", False) == (keys(4, 5), keys(4, 5))


def test_a_larger_set_of_the_command_has_a_sparse_store():
    assert intersect(keys(0, 40), keys(20, 1100), psi.PEER, "malicious", True) == (None, keys(20, 20))


def test_a_larger_set_of_the_reference_has_a_sparse_store():
    assert intersect(keys(0, 1100), keys(1090, 40), psi.ME, "malicious", False) == (keys(1090, 10), None)


def test_an_intersection_whose_protocol_nobody_named():
    assert intersect(keys(0, 9), keys(4, 30), psi.ME, "malicious", True, "auto") == (keys(4, 5), None)


def test_a_semi_honest_intersection_for_the_command():
    # 41 + 13 bits, and tags with a prefix of 9 bits.
    assert intersect(keys(0, 61), keys(50, 60), psi.PEER, "semi-honest", False) == (None, keys(50, 11))


def test_a_semi_honest_intersection_of_one_key_for_the_reference():
    assert intersect(["a"], ["a"], psi.ME, "semi-honest", True) == (["a"], None)


def test_keys_of_two_typed_columns():
    """By the second implementation of the normal forms, tools/keys."""
    sys.path.insert(0, str(command.ROOT / "tools" / "keys"))
    from keys import normalise

    lines = ["Ann@Example.ORG,1.2.1990", "bob@example.org,02.03.1991", "eve@example.org,1.1.1970"]
    types = ("email", "date:DMY")
    with command.Peer(
        "psi --input DIR/in.csv --key mail:email,born=day:date:DMY --result me --output DIR/out.csv --protocol vole", True,
        {"in.csv": "mail,day\n" + "".join(line + "\n" for line in lines)},
    ) as peer:
        version = command.version_of_keys().replace("1 columns", "2 columns")
        terms = {
            **command.COMMON, **command.KEYS, "protocol": "vole", "security": "malicious", "key columns": "2",
            "key types": "email, date", "key labels": "(none), born",
            "version of keys": f"{version}; rules of version 1 for email, date; called (none), born",
        }
        wire.greet(peer.channel, ("psi", "result peer", "result me"), terms)
        mine = [("ann@example.org", "01.02.1990"), ("bob@example.org", "2.3.1992"), ("EVE@example.org", "1970-01-01")]
        elements = [psi.element(*(normalise(*pair) for pair in zip(types, parts))) for parts in mine]
        psi.Run(peer.channel, elements, malicious=True, learns=psi.PEER).run()
        wire.finish(peer.channel)
        ended_well(peer)
        assert command.rows(peer) == [lines[0], lines[2]]


def test_empty_sets_match_nothing():
    assert intersect([], keys(0, 3), psi.PEER, "malicious", True) == (None, [])


def exported(name):
    """The circuit of a built-in function, as the command writes it."""
    text = subprocess.run(
        [command.command(), "circuit", "export", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    return circuit.read(text.stdout)


def bits(value, width=128):
    return [value >> i & 1 for i in range(width)]


def number(found):
    return sum(bit << i for i, bit in enumerate(found))


def evaluate(name, role, inputs, to, listens):
    """This side's outputs and the command's, as numbers; `inputs` are the garbler's and the evaluator's."""
    function, (mine, theirs) = exported(name), inputs if role == "garbler" else inputs[::-1]
    body = yao.garble if role == "garbler" else yao.evaluate
    peer, job, terms = command.yao(role, function, name, theirs, to, listens=listens)
    with peer:
        wire.greet(peer.channel, job, terms)
        width = function.inputs[0]
        found = body(peer.channel, function, [bits(mine, width)], to != "evaluator", to != "garbler")
        wire.finish(peer.channel)
        result = ended_well(peer)
        return found and number(found[0]), result["outputs"] and int(result["outputs"][0], 16)


def test_one_aes_with_the_command_as_evaluator():
    assert evaluate("aes128", "garbler", (KEY, BLOCK), "both", True) == (ENCRYPTED, ENCRYPTED)


def test_one_aes_with_the_command_as_garbler():
    assert evaluate("aes128", "evaluator", (KEY, BLOCK), "both", False) == (ENCRYPTED, ENCRYPTED)


def test_many_rows_side_by_side():
    # Two groups of sixteen rows and one of a single row, in which gates have another order.
    function, ours, theirs = exported("add8"), list(range(5, 38)), list(range(250, 217, -1))
    sums = [(a + b) % 256 for a, b in zip(ours, theirs)]
    for role, body, listens in (("garbler", yao.garble, True), ("evaluator", yao.evaluate, False)):
        peer, job, terms = command.yao_rows(role, function, "add8", theirs, "both", listens=listens)
        with peer:
            wire.greet(peer.channel, job, terms)
            found = body(peer.channel, function, [bits(value, 8) for value in ours], True, True)
            wire.finish(peer.channel)
            ended_well(peer)
            table = [line.split(",") for line in peer.path("out.csv").read_text().splitlines()[1:]]
        assert [number(row) for row in found] == sums == [int(result, 0) for _, result in table]


def test_only_the_side_that_is_to_learn_gets_an_output():
    assert evaluate("add8", "garbler", (200, 100), "evaluator", False) == (None, 44)
    assert evaluate("add8", "garbler", (200, 101), "garbler", False) == (45, None)


test_the_pages_vectors_of_intersections.seconds = 5
test_the_pages_vectors_of_transfers_and_of_yao.seconds = 3
test_softspoken_in_groups_of_two.seconds = 8
