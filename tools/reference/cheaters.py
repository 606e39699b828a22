"""Peers that do not keep to the pages: the command must refuse them, and give nothing out."""

import struct

import numpy as np

import blocks as B
import command
import honest
import kos
import link
import psi
import ristretto
import softspoken
import vole
import wire
import yao
from wire import BYE, DATA, HELLO, FIRST, Ended, Refused, hello

MINE, THEIRS = honest.keys(0, 6), honest.keys(3, 8)
# RFC 9496, appendix A.3, the identity, and the generator with its highest bit set.
BAD_POINTS = [
    bytes.fromhex(line)
    for line in """
    00ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f
    f3ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f
    0100000000000000000000000000000000000000000000000000000000000000 01ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f
    ed57ffd8c914fb201471d1c3d245ce3c746fcbe63a3679d51b6a516ebebe0e20 c34c4e1826e5d403b78e246e88aa051c36ccf0aafebffe137d148a2bf9104562
    c940e5a4404157cfb1628b108db051a8d439e1a421394ec4ebccb9ec92a8ac78 47cfc5497c53dc8e61c91d17fd626ffb1c49e2bca94eed052281b510b1117a24
    f1c6165d33367351b0da8f6e4511010c68174a03b6581212c71c0e1d026c3c72 87260f7a2f12495118360f02c26a470f450dadf34a413d21042b43b9d93e1309
    26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371 4eac077a713c57b4f4397629a4145982c661f48044dd3f96427d40b147d9742f
    ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f 0000000000000000000000000000000000000000000000000000000000000000
    e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2df6
    """.split()
]


def refused(start, body, *words):
    """Runs `body` against the command, which must end with exit code 4, one of these words, and no result."""
    peer, job, terms = start()
    with peer:
        try:
            body(peer.channel, job, terms)
        except (Refused, Ended):
            pass
        code, result, said = peer.end()
        assert code == 4 and result is None, (code, result, said)
        assert not words or any(word in said for word in words), said
        assert command.rows(peer) is None and not peer.path("share.npz").exists()


def greeted(body):
    def run(channel, job, terms):
        wire.greet(channel, job, terms)
        body(channel)

    return run


# The handshake.


def wrong_greetings(job, terms):
    """(bytes in place of a greeting, a word of the command's error, whether it ends a listener's waiting)."""
    pairs = sorted(terms.items())

    def greeting(parameters, **options):
        return frame(HELLO, hello(*job, parameters, **options))

    joining = b"TACIT\0" + struct.pack("<I", wire.WIRE_VERSION) + b"\x050.1.0\x01" + bytes(32)
    return [
        (greeting(terms, version=3), "wire format 3", True),
        (greeting(terms, release="0.0.9"), "0.0.9", True),
        (greeting({**terms, "count": "101"}), "101", True),
        (greeting({**terms, "more": "1"}), "more", True),
        (greeting(pairs[1:]), "base-ot", True),
        (frame(HELLO, hello(job[0], job[2], job[1], terms)), "both sides have --role", True),
        (frame(HELLO, hello("psi", *job[1:], terms)), "psi", True),
        (greeting({**terms, "kind": "\x1b[2J\nerror: x"}), "\\\\x1b[2J\\\\nerror: x", True),
        (greeting(terms, purpose=7), "unknown kind", False),
        (frame(HELLO, joining), "further channel", False),
        (greeting(pairs[::-1]), "out of order", False),
        (greeting(pairs[:1] + pairs), "out of order", False),
        (greeting({**terms, **{f"x{i}": "" for i in range(65)}}), "too many parameters", False),
        (greeting({**terms, "y" * 65: ""}), "too long a name", False),
        (frame(HELLO, hello(*job, terms)[:-1]), "ends too early", False),
        (frame(HELLO, hello(*job, terms) + b"\x01\x00\xff\x00\x00"), "not text", False),
        (frame(HELLO, hello(*job, terms) + bytes(1 << 16)), "than the 65536 allowed", False),
        (b"\xa7\xff\xff\xff", "than the 1048576 allowed", False),
        (frame(HELLO, b""), "empty frame", False),
        (frame(DATA, hello(*job, terms)), "does not speak Tacit", False),
    ]


def frame(kind, payload):
    return bytes([kind]) + struct.pack("<I", len(payload))[:3] + payload


def test_wrong_greetings_end_a_connecting_command():
    job, terms = (
        ("ot", "sender", "receiver"),
        {**command.COMMON, "count": "100", "kind": "cot", "protocol": "kos", "security": "malicious"},
    )
    for greeting, word, _ in wrong_greetings(job, terms):

        def body(channel, *_):
            channel.recv_hello()
            channel.raw(greeting)
            channel.recv_hello()

        refused(lambda: command.ot("sender", "cot", 100), body, word)


def test_a_listening_command_waits_on_after_strangers_and_serves_the_peer():
    peer, job, terms = command.ot("sender", "cot", 100, listens=False)
    address = "%s:%d" % peer.channel.sock.getpeername()
    with peer:
        channel = peer.channel
        for greeting, word, ends in wrong_greetings(job, terms):
            if not ends:
                channel.raw(greeting)
                # One that asks to join is held until the session is there whose channel it could be.
                if word != "further channel":
                    drain(channel)
                channel.sock.close()
                channel = wire.connect(address)
        for change in (
            lambda tag, _: bytes(len(tag)),
            lambda _, other: other,
            lambda tag, _: tag[:-1],
            lambda tag, _: tag + b"\0",
        ):
            confirm_with(channel, job, terms, change)
            channel = wire.connect(address)
        peer.channel = channel
        wire.greet(channel, job, terms)
        kos.Sender(channel).extend(channel, 100)
        wire.finish(channel)
        honest.ended_well(peer)


def drain(channel):
    """Everything until the peer's end."""
    try:
        while True:
            channel.recv_hello()
    except (Refused, Ended):
        pass


def confirm_with(channel, job, terms, change):
    """Greets, and sends what `change` makes of its own and the peer's confirmation."""
    mine = hello(*job, terms)
    channel.frame(HELLO, mine)
    session = wire.labelled("tacit 3 session id", channel.recv_hello(), mine, b"")
    own, other = (wire.labelled("tacit 3 session confirmation", session, bytes([end])) for end in (wire.SECOND, FIRST))
    channel.frame(HELLO, change(own, other))
    drain(channel)
    channel.sock.close()


def test_frames_that_are_not_due_end_a_session():
    for raw, word in [
        (frame(HELLO, hello("ot", "sender", "receiver", {})), "unknown kind"),
        (frame(DATA, b""), "empty frame"),
        (b"\xd7\x01\x00\x10", "than the 1048576 allowed"),
        (frame(BYE, b""), "closed the connection"),
        (frame(BYE, b"x"), "closed the connection"),
        (frame(BYE, b"\x04"), "the peer stopped: it was interrupted"),
        (frame(BYE, b"\x04\x04"), "unknown kind"),
    ]:

        def body(channel):
            channel.raw(raw)
            channel.recv(1 << 20)

        refused(lambda: command.ot("sender", "cot", 100), greeted(body), word)


def joining(peer, index, end=wire.SECOND):
    """A further connection that has greeted, and the greeting that answers it if it is taken."""
    channel = wire.connect("%s:%d" % peer.channel.sock.getpeername())
    head = b"TACIT\0" + struct.pack("<I", wire.WIRE_VERSION) + b"\x050.1.0\x01"

    def greeting(end):
        return head + wire.labelled(
            "tacit 3 channel join", peer.channel.session, struct.pack("<H", index), bytes([end])
        )

    channel.frame(HELLO, greeting(end))
    return channel, greeting(FIRST)


def test_only_the_channel_that_is_due_joins_a_session():
    words = "ot --role receiver --count 100 --kind cot --protocol kos --threads 2"
    with command.Peer(words, False) as peer:
        terms = {
            **command.COMMON,
            "channels": "2",
            "count": "100",
            "kind": "cot",
            "protocol": "kos",
            "security": "malicious",
        }
        wire.greet(peer.channel, ("ot", "sender", "receiver"), terms)
        strangers = [joining(peer, index, end)[0] for index, end in ((0, wire.SECOND), (2, wire.SECOND), (1, FIRST))]
        # Whether they came before the session was known or after, they are not kept until the right one comes.
        for stranger in strangers:
            stranger.sock.settimeout(10)
            try:
                raise AssertionError(stranger.recv_hello())
            except Ended:
                stranger.sock.close()
        channel, answer = joining(peer, 1)
        assert channel.recv_hello() == answer
        channel.sock.close()


# Transfers.


def test_a_pick_of_less_security_or_of_what_is_unknown_is_refused():
    wrong = [("auto", *pair) for pair in ((b"iknp", b""), (b"kos", b"x"), (b"oos", b""), (b"", b""))]
    wrong += [("auto", b"softspoken", variant) for variant in (b"", b"groups-4", b"code groups-3")]
    for asked, protocol, variant in [*wrong, ("softspoken", b"kos", b"")]:

        def body(channel, *_):
            wire.greet(channel, *command.plan("cot", honest.MANY, asked))
            wire.pick(channel, protocol, variant)
            channel.recv(33)

        start = lambda: command.ot("sender", "cot", honest.MANY, protocol=asked)  # noqa: E731
        refused(start, body, "picked a protocol that is unknown")


def test_a_measurement_without_end_is_refused():
    for questions in ([1] * 9, [(1 << 23) + 1], [1 << 23] * 9, [1 << 63]):

        def body(channel, *_):
            wire.greet(channel, *command.plan("cot", honest.MANY))
            # Nobody compares what passed, and hashing it takes longer than all else.
            channel.recordings = []
            for question in questions:
                channel.send(wire.u64(question))
                channel.recv(8 if question == 1 else -(-question // 65536) * 65536)

        refused(lambda: command.ot("sender", "cot", honest.MANY, protocol="auto"), body, "asks for too much")


def test_points_that_are_none_are_refused_in_either_message():
    good = ristretto.encode(ristretto.GENERATOR)
    for bad in BAD_POINTS:

        def as_sender(channel):
            channel.send(bad)
            channel.recv(127 * 80 + 1)

        def as_receiver(channel):
            phi = [good + bytes(48)] * 127
            phi[126] = bad + bytes(48)
            channel.send(b"".join(phi))
            channel.recv(32 + 1)

        refused(lambda: command.ot("receiver", "cot", 100), greeted(as_sender), "canonical", "identity")
        refused(lambda: command.ot("sender", "cot", 100), greeted(as_receiver), "canonical", "identity")


def flip(channel, target, every=None, places=None):
    """Flips a bit of message `target`, counted from here on, or of each piece of `every` bytes, or of these bytes."""

    def tamper(at, data):
        if at != target:
            return data
        data = bytearray(data)
        for place in places or range(0, len(data), every or len(data)):
            data[place] ^= 16
        return bytes(data)

    channel.tamper, channel.messages = tamper, 0


def test_a_kos_receiver_with_other_choices_in_each_column_is_caught():
    def body(channel):
        cot = kos.Receiver(channel)
        # Three blocks a column: one row of every column says otherwise.
        flip(channel, 0, every=16 * 3)
        cot.extend(channel, 200)
        channel.recv(1)

    refused(lambda: command.ot("receiver", "rot", 200), greeted(body), "columns do not agree")


def test_a_kos_receiver_with_one_wrong_answer_is_caught():
    def body(channel):
        cot = kos.Receiver(channel)
        flip(channel, 1)
        cot.extend(channel, 200)
        channel.recv(1)

    refused(lambda: command.ot("receiver", "cot", 200), greeted(body), "columns do not agree")


def test_a_wrong_hash_of_what_passed_gives_no_result():
    for target in (0, 1):

        def body(channel):
            kos.Receiver(channel).extend(channel, 100)
            flip(channel, target)
            wire.finish(channel)

        refused(lambda: command.ot("receiver", "cot", 100), greeted(body), "changed in transit")


def softspoken_sender(count=200, size=2):
    """The command as SoftSpoken's sender."""
    return command.ot("receiver", "cot", count, **honest.way(size))


def test_another_size_of_groups_is_refused():
    def body(channel, job, terms):
        wire.greet(channel, job, {**terms, "code": "groups-8"})

    refused(lambda: softspoken_sender(size=4), body, "groups-8")


class Guessing(softspoken.Receiver):
    """Other choices in one group, which fits where the guess of the group's bits of Δ is right."""

    group, guess = 5, (1, 0)

    def columns(self, r):
        t, sent = super().columns(r)
        sent[self.group, 0, 0] ^= B.ONE
        for i, bit in zip(self.groups[self.group], self.guess, strict=True):
            t[i, 0, 0] ^= np.uint64(bit)
        return t, sent

    def right(self, delta):
        return tuple(delta >> i & 1 for i in self.groups[self.group]) == self.guess


class Bending(softspoken.Receiver):
    """One wrong correction, which only a sender with the other bit of Δ does not use."""

    # The second column of the fourth group, bit 1.
    column, correction = 8, 7

    def __init__(self, channel, size):
        flip(channel, 1, places=[16 * self.correction])
        super().__init__(channel, size)

    def right(self, delta):
        return not delta >> self.column & 1


def passes(cheater):
    """Whether the command takes a cheater's columns. It must not, where the cheater's guess of Δ is wrong."""
    peer, job, terms = softspoken_sender()
    with peer:
        wire.greet(peer.channel, job, terms)
        try:
            cot = cheater(peer.channel, 2)
            w = cot.extend(peer.channel, 200)
            wire.finish(peer.channel)
        except (Refused, Ended):
            pass
        code, result, said = peer.end()
        if code == 0:
            with np.load(peer.path("share.npz")) as share:
                assert cot.right(B.to_int(share["delta"]))
                honest.check_correlated(share["delta"], share["v"], w)
            return True
        assert code == 4 and result is None and "columns do not agree" in said, (code, result, said)
        assert not peer.path("share.npz").exists()
        return False


def test_a_softspoken_receiver_passes_only_with_a_right_guess():
    # A guess of two bits, and of one: all tries fail with probability 2^-40.
    for cheater, tries in ((Guessing, 97), (Bending, 40)):
        assert any(passes(cheater) for _ in range(tries)), cheater


def test_a_softspoken_receiver_with_wrong_corrections_for_both_bits_is_caught():
    for size in (2, 8):

        def body(channel):
            # Both of the last level of the last group but one: a sender of either bit uses one of them.
            end = 16 * sum(2 * len(columns) - 2 for columns in softspoken.groups(size)[:-1])
            flip(channel, 1, places=[end - 32, end - 16])
            softspoken.Receiver(channel, size).extend(channel, 200)
            channel.recv(1)

        refused(lambda: softspoken_sender(size=size), greeted(body), "columns do not agree")


def test_a_softspoken_receiver_that_answers_for_another_batch_is_caught():
    def body(channel):
        cot, owed = softspoken.Receiver(channel, 2), []

        def swapped(channel, t, data):
            owed.append(cot.challenged(channel, t, data))
            if len(owed) == 2:
                channel.send(B.to_bytes(np.concatenate(owed[::-1])))

        cot.answer = swapped
        cot.extend(channel, 65_500)
        channel.recv(1)

    refused(lambda: softspoken_sender(65_500), greeted(body), "columns do not agree")


# Intersections.


def intersection(learns, cheat, theirs=None):
    """A run of the reference that `cheat` spoils once the announcements are there."""

    def body(channel):
        run = psi.Run(channel, [psi.element(key) for key in MINE], malicious=True, learns=learns)
        cheat(run, channel)
        run.run()
        wire.finish(channel)

    word = honest.WORDS[learns]
    return lambda *words: refused(lambda: command.psi(word, theirs or THEIRS), greeted(body), *words)


def linking(between, *words):
    """A link that the reference spoils at the places that `between` changes."""

    def body(channel):
        link.run(channel, [psi.element(key) for key in MINE], True, between)
        wire.finish(channel)

    for listens in (True, False):
        refused(lambda: command.link(THEIRS, listens=listens), greeted(body), *words)


def test_a_link_that_is_not_confirmed_is_refused():
    linking(lambda place, data: bytes(32) if place == "confirmation" else data, "does not confirm")


def test_directions_of_a_link_that_are_not_bound_to_each_other_are_refused():
    """Whichever side receives in the second direction finds it out; the other one loses its peer."""
    linking(lambda place, data: bytes(32) if place == "before" else data)


def test_announcements_that_do_not_fit_are_refused():
    right = psi.announcement(6, True, psi.ME)
    for wrong, word in [
        (psi.announcement(6, True, psi.ME, b"tacit-psi vole-6"), "another protocol or version"),
        (psi.announcement(6, False, psi.ME), "semi-honest"),
        (psi.announcement(6, True, psi.PEER), "who learns"),
        (right[:18] + b"\1" + right[19:], "another protocol or version"),
        (psi.announcement((1 << 24) + 1, True, psi.ME), "16777217"),
        (psi.announcement((1 << 64) - 1, True, psi.ME), "18446744073709551615"),
    ]:

        def body(channel):
            channel.send(wrong)
            channel.recv(65)

        refused(lambda: command.psi("me", THEIRS), greeted(body), word)


def test_more_keys_than_were_allowed_are_refused_before_the_salt():
    def body(channel):
        channel.send(psi.announcement(9, True, psi.PEER))
        assert len(channel.recv(32)) == 32
        channel.recv(1)
        raise AssertionError("it went on")

    refused(
        lambda: command.psi("peer", THEIRS, more="--max-peer-rows 8"), greeted(body), "9 elements where at most 8"
    )


def test_another_number_of_keys_than_was_said_for_the_choice_of_a_protocol_is_refused():
    for said, word in ((1, "9 elements where at most 1"), (12, "fewer elements than it said")):

        def body(channel):
            channel.send(wire.u64(said))
            channel.recv(8)
            channel.send(psi.announcement(9, True, psi.PEER))
            channel.recv(32 + 1)

        refused(lambda: command.psi("peer", THEIRS, protocol="auto"), greeted(body), word)


def test_a_coin_that_is_not_the_one_committed_to_is_refused():
    def cheat(run, channel):
        seeds = run._seeds

        def other():
            seeds()
            run.coin = bytes(32)

        run._seeds = other

    intersection(psi.PEER, cheat)("coin is not the one committed to")


def test_a_vole_sender_that_bends_a_leaf_is_caught():
    def cheat(run, channel):
        def bent(self, channel, count):
            return vole_extend(self, channel, count, bend)

        def bend(corrections):
            corrections[77, 0] ^= B.ONE
            return corrections

        vole_extend = vole.Sender.extend
        patch(vole.Sender, "extend", bent)

    with restored():
        intersection(psi.PEER, cheat)("do not fit")


def test_a_contribution_chosen_late_is_refused():
    def cheat(run, channel):
        begin = vole.Party.begin

        def late(self, channel):
            self.opening = bytes(32)
            begin(self, channel)

        patch(vole.Party, "begin", late)

    with restored():
        intersection(psi.PEER, cheat)("not the one that it committed to")


def test_a_softspoken_receiver_with_other_choices_in_each_group_is_caught():
    def cheat(run, channel):
        columns = softspoken.Receiver.columns

        def spoilt(self, r):
            t, sent = columns(self, r)
            sent[:, 0, 0] ^= B.ONE
            return t, sent

        patch(softspoken.Receiver, "columns", spoilt)

    with restored():
        intersection(psi.ME, cheat)("columns do not agree")


def tags_cheat(change):
    """What the command says to a sender whose tags `change` makes of the right ones."""

    def cheat(run, channel):
        write = psi.write_tags
        patch(psi, "write_tags", lambda sizes, tags: change(sizes, tags, write))

    return cheat


def test_tags_that_repeat_or_descend_are_refused():
    def repeated(sizes, tags, write):
        return write(sizes, [tags[0], *tags[:-1]])

    def descending(sizes, tags, write):
        size = -(-sizes.bitmap // 8)
        data = write(sizes, tags)
        rests = [data[at : at + sizes.rest] for at in range(size, len(data), sizes.rest)]
        # All have the prefix 0, and the rests fall.
        bits = np.zeros(sizes.bitmap, np.uint8)
        bits[: len(tags)] = 1
        return B.pack(bits) + b"".join(sorted(rests, key=lambda rest: rest[::-1], reverse=True))

    for change in (repeated, descending):
        with restored():
            intersection(psi.PEER, tags_cheat(change))("do not ascend")


def test_a_bitmap_of_other_tags_is_refused():
    def changed(sizes, tags, write):
        data = write(sizes, tags)
        size = -(-sizes.bitmap // 8)
        bits = B.bits_of(data[:size], sizes.bitmap)
        bits[np.flatnonzero(bits == 0)[0]] = 1
        return B.pack(bits) + data[size:]

    with restored():
        intersection(psi.PEER, tags_cheat(changed))("prefixes")


def test_matches_without_proof_and_places_that_repeat_are_refused():
    def proofs(change):
        def cheat(run, channel):
            receive = run._receive

            def changed():
                send, state = channel.send, {"proofs": 0}

                def other(data):
                    if len(data) == 20:
                        data, state["proofs"] = change(data, state["proofs"]), state["proofs"] + 1
                    send(data)

                channel.send = other
                return receive()

            run._receive = changed

        return cheat

    larger = honest.keys(3, 40)
    intersection(psi.BOTH, proofs(lambda data, _: data[:-1] + bytes([data[-1] ^ 1])), larger)("a match without proof")
    intersection(psi.BOTH, proofs(lambda data, at: b"\0\0\0\0" + data[4:]), larger)("do not ascend")


# Yao.


def test_an_output_label_that_is_neither_is_refused():
    function = honest.exported("add8")

    def bent(labels):
        labels = labels.copy()
        labels[3, 0, 1] ^= B.ONE
        return labels

    def body(channel, job, terms):
        wire.greet(channel, job, terms)
        yao.evaluate(channel, function, [honest.bits(9, 8)], True, False, flip=bent)
        channel.recv(1)

    start = lambda: command.yao("evaluator", function, "add8", 7, "garbler")  # noqa: E731
    refused(start, body, "output label is not valid")


def test_other_terms_of_yao_are_refused():
    function = honest.exported("add8")
    for place, word in ((0, "who"), (1, "sizes"), (17, "function")):

        def body(channel, job, terms):
            wire.greet(channel, job, terms)
            kos.Sender(channel)
            mine = bytearray(yao.terms(channel, function, yao.GARBLER, 1, True, False))
            mine[place] ^= 1
            channel.send(bytes(mine))
            channel.recv(50)

        refused(lambda: command.yao("garbler", function, "add8", 7, "garbler"), body, word)


# What a cheater changes of the reference is put back after its run.

_changed = []


def patch(owner, name, value):
    _changed.append((owner, name, getattr(owner, name)))
    setattr(owner, name, value)


class restored:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        while _changed:
            setattr(*_changed.pop())
