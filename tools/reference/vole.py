"""VOLE over GF(2^128) from half-trees and a code (docs/wire/vole.md): w = v + u·Δ."""

import numpy as np

import blocks as B
import softspoken
from wire import Transcript, commitment, refuse_unless

WEIGHT, LANES, GROUP = 424, 4, 8
LARGEST_RUN = 7 << 16


def up(a, b):
    """a / b, rounded up."""
    return -(-a // b)


def runs(count):
    """The sizes of the runs of a request."""
    size = up(count, up(count, LARGEST_RUN))
    return [min(size, count - start) for start in range(0, count, size)]


class Layout:
    """Trees, their depth, and how many leaves of each are positions, for `count` correlations in one run."""

    def __init__(self, count):
        assert 0 < count <= LARGEST_RUN
        wanted = 2 * (count + 1) + 4096

        def tiles(depth):
            return up(max(WEIGHT, up(wanted, 1 << depth)), LANES)

        def cost(depth):
            return (tiles(depth) * LANES << depth) + 2000 * tiles(depth) * LANES * depth

        self.depth = min(range(8, 21), key=cost)
        self.tiles = tiles(self.depth)
        self.trees = self.tiles * LANES
        grain = max(128, 1 << (self.depth - 6))
        block = up(up(wanted, self.trees), grain) * grain
        self.block = min(max(block, 256), 1 << self.depth)
        self.positions = self.trees * self.block
        self.cots = self.trees * self.depth
        tree = np.arange(self.trees)
        # Which correlation belongs to a tree's level: (trees, depth).
        self.cot = (tree[:, None] // LANES * self.depth + np.arange(self.depth)) * LANES + tree[:, None] % LANES

    def in_order(self, per_tree):
        """(trees, block, 2) by tree, to positions: tile by tile, leaf by leaf, lane by lane."""
        shaped = per_tree.reshape(self.tiles, LANES, self.block, 2)
        return np.ascontiguousarray(shaped.transpose(0, 2, 1, 3)).reshape(self.positions, 2)


class GroupKeys:
    """A key of CCR for each group of eight tiles."""

    def __init__(self, seed, layout):
        keys = B.encrypt(B.round_keys(seed), B.counters(0, up(layout.tiles, GROUP)))
        self.keys = B.round_keys(keys)[np.arange(layout.trees) // (GROUP * LANES)]

    def ccr(self, nodes):
        return B.ccr(self.keys[:, None], nodes)


class Code:
    """Accumulates, permutes, accumulates, permutes and folds; factors in between."""

    def __init__(self, seed, length):
        transcript = Transcript("tacit block-accumulate 3x32 scaled v1").append("seed", B.to_bytes(seed))
        transcript.append_u64("length", length)

        def prg(label):
            return B.Prg(B.of_bytes(transcript.challenge(label, 16))[0])

        self.length = length
        permutations = prg("permutations")
        self.keys = [[permutations.u64() & 0xFFFFFFFF for _ in range(4)] for _ in range(2)]
        self.factors = [prg(label) for label in ("first", "second", "fold")]
        self.diagonal = prg("diagonal")

    def images(self, which, first, count):
        length = self.length
        log_b = min((length & -length).bit_length() - 1, up(length.bit_length() - 1, 2))
        a, mask = np.uint64(length >> log_b), np.uint64((1 << log_b) - 1)
        word, log_b = np.uint64(0xFFFFFFFF), np.uint64(log_b)

        def mix(x):
            x = x & word
            x ^= x >> np.uint64(16)
            x = x * np.uint64(0x7FEB352D) & word
            x ^= x >> np.uint64(15)
            x = x * np.uint64(0x846CA68B) & word
            return x ^ x >> np.uint64(16)

        x = np.arange(first, first + count, dtype=np.uint64)
        left, right = x >> log_b, x & mask
        for k in (0, 2):
            right = right + mix(left + np.uint64(self.keys[which][k])) & mask
            left = left + (mix(right + np.uint64(self.keys[which][k + 1])) * a >> np.uint64(32))
            left = np.where(left >= a, left - a, left)
        return (left << log_b | right).astype(np.int64)

    def encode(self, words, count):
        """The first results of each of `words` (k, length, 2)."""
        for stage in (0, 1):
            words = B.mul(words, self.factors[stage].take(self.length)[None])
            words = np.bitwise_xor.accumulate(words, axis=1)
            if stage == 0:
                words = words[:, self.images(0, 0, self.length)]
        whole = up(count, 32) * 32
        out = words[:, self.images(1, 0, whole)].copy()
        lower = words[:, self.images(1, self.length // 2, whole)]
        lower = B.mul(lower, self.factors[2].take(whole)[None])
        for at in range(0, whole, 32):
            matrix = np.frombuffer(B.to_bytes(self.diagonal.take(8)), np.uint8).reshape(4, 4, 8)
            for row in range(32):
                bits = np.unpackbits(matrix[row // 8, :, row % 8], bitorder="little")
                out[:, at + row] ^= B.xor_all(B.masked(bits, lower[:, at : at + 32]), 1)
        return out[:, :count]


class Party:
    """What both sides' runs have alike."""

    def __init__(self, channel, malicious, source, sends):
        self.malicious, self.source, self.sends, self.run = malicious, source, sends, 0
        self.context = Transcript("tacit silent vole gf128 v4").append("session", channel.session)
        self.context.append_u64("malicious", int(malicious)).append_u64("instance", channel.next_instance())
        self.opening, self.joint = channel.random(32), None
        parameters = self.context.copy().challenge("parameters", 16)
        channel.send(parameters)
        channel.send(commitment(self._binding(sends), b"", self.opening))
        source.finish(channel)
        refuse_unless(channel.recv(16) == parameters, "other parameters of VOLE")
        self.theirs = channel.recv(32)

    def _binding(self, sender):
        return self.context.copy().challenge("sender's seed" if sender else "receiver's seed", 32)

    def begin(self, channel):
        self.run += 1
        if self.joint is None:
            channel.send(self.opening)

    def join(self, channel, count):
        """The run's public parts."""
        if self.joint is None:
            theirs = channel.recv(32)
            expected = commitment(self._binding(not self.sends), b"", theirs)
            refuse_unless(expected == self.theirs, "the peer's seed is not the one that it committed to")
            pair = [self.opening, theirs] if self.sends else [theirs, self.opening]
            joint = self.context.copy().append("sender's seed", pair[0]).append("receiver's seed", pair[1])
            self.joint = joint.challenge("seed", 32)
        run = (
            self.context.copy().append_u64("run", self.run).append_u64("count", count).append("joint seed", self.joint)
        )
        tree, leaf, code = (B.of_bytes(run.challenge(label, 16))[0] for label in ("tree", "leaf", "code"))
        return run, tree, leaf, code

    def cots(self, layout):
        return layout.cots, 128 * layout.trees, 128 if self.malicious else 0

    @staticmethod
    def drawn(seed, layout):
        """What the sender's seed adds to each tree's root, and to its value."""
        return np.split(B.Prg(seed).take(2 * layout.trees), 2)

    def weighed(self, seed, layout, noise):
        """Σ weights·noise, and the variables and tiles' weights."""
        drawn = B.Prg(seed).take(layout.depth + 2 + layout.tiles)
        variables, tiles = drawn[: layout.depth + 2], drawn[layout.depth + 2 :]
        monomials = B.of_int(1)[None]
        for variable in variables:
            monomials = np.concatenate([monomials, B.mul(monomials, variable)])
        length = LANES * layout.block
        shaped = noise.reshape(layout.tiles, length, 2)
        sums = B.xor_all(B.mul(shaped, monomials[None, :length]), 1)
        return B.xor_all(B.mul(sums, tiles)), monomials, tiles

    def digest(self, run, value):
        out = run.copy().append_u64("round", self.run).append("check", B.to_bytes(value))
        return out.challenge("digest", 32)


class Sender(Party):
    def __init__(self, channel, malicious, delta=None):
        source = softspoken.SenderByHash(channel, malicious, delta)
        super().__init__(channel, malicious, source, True)
        self.delta = source.delta

    def extend(self, channel, count, bend=None):
        """v of `count` correlations. A cheater's `bend` changes the corrections of the leaves."""
        layout, delta = Layout(count), B.of_int(self.delta)
        self.begin(channel)
        run, tree, leaf, code = self.join(channel, count)
        sizes = self.cots(layout)
        cots = self.source.extend(channel, sum(sizes))
        levels, values, check = np.split(cots, np.cumsum(sizes)[:-1])
        bits = B.bits_of(channel.recv(up(layout.cots, 8)), layout.cots)
        masks = (levels ^ B.masked(bits, np.broadcast_to(delta, levels.shape)))[layout.cot]
        seed = B.of_bytes(channel.random(16))[0]
        channel.send(B.to_bytes(seed))
        offsets, shifts = self.drawn(seed, layout)
        roots = offsets ^ masks[:, 0]
        nodes, keys = np.stack([roots, roots ^ delta], 1), GroupKeys(tree, layout)
        corrections = B.zeros(layout.trees, layout.depth - 1)
        for level in range(1, layout.depth):
            left = keys.ccr(nodes)
            corrections[:, level - 1] = B.xor_all(left, 1) ^ masks[:, level]
            nodes = np.concatenate([left, nodes ^ left], 1)
        # Tile by tile, level by level, lane by lane.
        ordered = corrections.reshape(layout.tiles, LANES, layout.depth - 1, 2).transpose(0, 2, 1, 3)
        channel.send(B.to_bytes(ordered))
        leaves = nodes[:, : layout.block].copy()
        leaves[..., 0] &= ~B.ONE
        leaves = GroupKeys(leaf, layout).ccr(leaves)
        of_trees = B.xor_all(leaves, 1) ^ B.power_sum(values.reshape(layout.trees, 128, 2)) ^ B.mul(shifts, delta)
        channel.send(B.to_bytes(bend(of_trees) if bend else of_trees))
        noise = layout.in_order(leaves)
        if self.malicious:
            message = B.of_bytes(channel.recv(32))
            value = self.weighed(message[0], layout, noise)[0] ^ B.power_sum(check) ^ B.mul(message[1], delta)
            channel.send(self.digest(run, value))
        return Code(code, layout.positions).encode(noise[None], count)[0]


class Receiver(Party):
    def __init__(self, channel, malicious):
        super().__init__(channel, malicious, softspoken.ReceiverByHash(channel, malicious), False)

    def extend(self, channel, count):
        """u and w of `count` correlations."""
        layout = Layout(count)
        self.begin(channel)
        sizes = self.cots(layout)
        cots = self.source.extend(channel, sum(sizes))
        levels, values, check = np.split(cots, np.cumsum(sizes)[:-1])
        points = np.array(
            [int.from_bytes(channel.random(8), "little") * layout.block >> 64 for _ in range(layout.trees)]
        )
        away = 1 - (points[:, None] >> np.arange(layout.depth) & 1)
        bits = B.lsb(levels)
        bits[layout.cot] ^= away.astype(np.uint8)
        channel.send(B.pack(bits))
        run, tree, leaf, code = self.join(channel, count)
        offsets, shifts = self.drawn(B.of_bytes(channel.recv(16))[0], layout)
        corrections = B.of_bytes(channel.recv(16 * layout.trees * (layout.depth - 1)))
        corrections = corrections.reshape(layout.tiles, layout.depth - 1, LANES, 2).transpose(0, 2, 1, 3)
        keys = levels[layout.cot]
        keys[:, 0] ^= offsets
        keys[:, 1:] ^= corrections.reshape(layout.trees, layout.depth - 1, 2)
        leaves = self._leaves(layout, GroupKeys(tree, layout), keys, points, away)
        leaves = leaves[:, : layout.block].copy()
        leaves[..., 0] &= ~B.ONE
        leaves = GroupKeys(leaf, layout).ccr(leaves)
        each = np.arange(layout.trees)
        leaves[each, points] = 0
        shares = B.power_sum(values.reshape(layout.trees, 128, 2))
        y = B.of_bytes(B.pack(B.lsb(values))) ^ shifts
        leaves[each, points] = B.of_bytes(channel.recv(16 * layout.trees)) ^ shares ^ B.xor_all(leaves, 1)
        w, u = layout.in_order(leaves), B.zeros(layout.trees, layout.block)
        u[each, points] = y
        if self.malicious:
            seed = B.of_bytes(channel.random(16))[0]
            value, monomials, tiles = self.weighed(seed, layout, w)
            of_points = B.mul(monomials[points * LANES + each % LANES], tiles[each // LANES])
            phi = B.xor_all(B.mul(of_points, y))
            x = B.of_bytes(B.pack(B.lsb(check)))[0]
            channel.send(B.to_bytes(np.stack([seed, phi ^ x])))
            expected = self.digest(run, value ^ B.power_sum(check))
            refuse_unless(channel.recv(32) == expected, "the single-point correlations do not fit Δ")
        return Code(code, layout.positions).encode(np.stack([layout.in_order(u), w]), count)

    @staticmethod
    def _leaves(layout, hashes, keys, points, away):
        """All leaves but the points', from the key of each level: the sum of its nodes away from the path."""
        each = np.arange(layout.trees)
        nodes = B.zeros(layout.trees, 2)
        nodes[each, away[:, 0]] = keys[:, 0]
        for level in range(1, layout.depth):
            path = points & (1 << level) - 1
            left = hashes.ccr(nodes)
            right = nodes ^ left
            # The path's children are unknown: that off the path is what the key lacks.
            left[each, path] = right[each, path] = 0
            sums = np.where(away[:, level, None] == 0, B.xor_all(left, 1), B.xor_all(right, 1))
            nodes = np.concatenate([left, right], 1)
            nodes[each, path + (away[:, level] << level)] = keys[:, level] ^ sums
        return nodes
