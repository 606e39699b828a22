"""The checks of correlated OT's extensions, KOS, SoftSpoken and OOS, at tiny sizes: docs/security-notes.md.

*What is modelled.* The receiver sends its columns, all of them; then the hash is drawn (`linear.py`); then it answers;
then the sender passes or ends the setup. A wrong column costs a guess of its bit of Δ, and what the receiver wins is
named by each model:

- `Unfit`: its check passes, and yet the rows are no correlations: some choices, or words of the code, would have to
  be two things at once. KOS is the repetition code, OOS any code. The page: at most one event 1/F a pair of columns,
  or (2^r − 1)/F where the rows' syndromes have rank r.
- `Groups`: the same of SoftSpoken, where a cheater fixes other columns for each value of a group's bits.
- `Streams`: several streams of a setup have checks on their way at once, and the receiver hears each verdict before it
  answers the next. It wins by naming all of Δ while the setup still gives. The page: 2^-k for k bits, as often as
  without any check, since verdicts are settled one after the other and none passes after a failure.

*What is left out.* The pseudorandom generator, base OTs, and hashing of rows. A challenge by Fiat and Shamir is that
the receiver may try `trials` times before it sends, and keep the best.

*Why the tiny case says something.* Neither argument uses that there are 127 columns or that F is 2^128: pairs and ranks
are counted, and F is a parameter that the exact value is a polynomial in.
"""

from fractions import Fraction
from itertools import combinations, product

from games import many, solve, uniform
from linear import Code, hashed, kernels, rank

KOS3 = Code((1, 1, 1))
KOS4 = Code((1, 1, 1, 1))
PARITY = Code((1, 0, 1), (0, 1, 1))
SHORTENED = Code((1, 0, 1, 1), (0, 1, 0, 1))


class Unfit:
    """A receiver whose rows are no words of the code where it does not guess, against a hash to `bits` bits.

    `known` is the variant in which it knows the hash before it sends, as where seeds are chosen late. `whatever`
    counts all that passes, rows that fit included.
    """

    def __init__(self, code, rows, bits, known=False, trials=1, whatever=False):
        self.code, self.rows, self.known, self.trials, self.whatever = code, rows, known, trials, whatever
        self.maps = kernels(rows, bits)

    def fits(self, columns, guessed):
        """Whether each row, cut down to the columns that were not guessed, is a word cut down likewise."""
        left = [i for i in range(self.code.length) if i not in guessed]
        words = {tuple(word[i] for i in left) for word in self.code.words()}
        return all(tuple(columns[i] >> row & 1 for i in left) in words for row in range(self.rows))

    def after(self, columns, kernel):
        """The best answer's chance to pass with rows that do not fit."""
        seen = [hashed(column, kernel) for column in columns]
        answers = sorted({hashed(vector, kernel) for vector in range(2**self.rows)})
        best = Fraction(0)
        for message in product(answers, repeat=self.code.dimension):
            word = [hashed(part, kernel) for part in self.code.word(message)]
            guessed = {i for i in range(self.code.length) if seen[i] != word[i]}
            chance = Fraction(1, 2 ** len(guessed))
            if chance > best and (self.whatever or not self.fits(columns, guessed)):
                best = chance
        return best

    def value(self, least_rank=0):
        """The best choice of columns, of those whose syndromes have at least this rank."""
        found = set()
        # Rows may have words added to them, which changes nothing: so they are zero where messages stand in words.
        zeros = (0,) * self.code.dimension
        for rest in product(range(2**self.rows), repeat=self.code.length - self.code.dimension):
            columns = zeros + rest
            if self.syndromes(columns) >= least_rank:
                found.add(tuple((chance, self.after(columns, kernel)) for chance, kernel in self.maps))
        if self.known:
            return max(value for outcomes in found for _, value in outcomes)
        return best_of(found, self.trials)

    def syndromes(self, columns):
        """The rank of what the dual code's words make of the columns."""
        dual = [
            word
            for word in product((0, 1), repeat=self.code.length)
            if all(sum(a & b for a, b in zip(word, generator)) % 2 == 0 for generator in self.code.generators)
        ]
        sums = []
        for word in dual:
            total = 0
            for bit, column in zip(word, columns):
                total ^= column if bit else 0
            sums.append(total)
        return rank(sums)


def best_of(choices, trials, best=Fraction(0)):
    """The expected best of so many draws, each of the distribution that is chosen when the best so far is known."""
    if trials == 0:
        return best
    after = {best: best_of(choices, trials - 1, best)}
    for outcomes in choices:
        for _, value in outcomes:
            if value > best and value not in after:
                after[value] = best_of(choices, trials - 1, value)
    return max(sum(chance * after[max(best, value)] for chance, value in outcomes) for outcomes in choices)


class Groups:
    """A receiver of SoftSpoken's that fixes for each value D of a group of two bits the sender's two columns.

    It passes and wins if no V and r explain all values that pass: w_i = V_i ⊕ D_i·r. Two dimensions.
    """

    def __init__(self, bits, known=False):
        self.maps, self.known = kernels(2, bits), known

    @staticmethod
    def explained(columns, values):
        return any(
            all(len({columns[value][i] ^ (r if value >> i & 1 else 0) for value in values}) == 1 for i in (0, 1))
            for r in range(4)
        )

    def after(self, columns, kernel, unexplained):
        best = 0
        for x in {hashed(vector, kernel) for vector in range(4)}:
            passing = {}
            for value in range(4):
                answer = tuple(hashed(columns[value][i] ^ (x if value >> i & 1 else 0), kernel) for i in (0, 1))
                passing.setdefault(answer, []).append(value)
            best = max([best, *(len(some) for some in passing.values() if tuple(some) in unexplained)])
        return Fraction(best, 4)

    def value(self):
        best = Fraction(0)
        subsets = [some for size in (2, 3, 4) for some in combinations(range(4), size)]
        # Columns of D = 0 are zero: V takes them up.
        for rest in product(product(range(4), repeat=2), repeat=3):
            columns = [(0, 0), *rest]
            unexplained = {some for some in subsets if not self.explained(columns, some)}
            outcomes = [(chance, self.after(columns, kernel, unexplained)) for chance, kernel in self.maps]
            best = max(best, max(v for _, v in outcomes) if self.known else sum(p * v for p, v in outcomes))
        return best


class Streams:
    """A receiver with several streams of one setup, whose checks are open at the same time.

    Of each stream it chooses the columns that it sends wrong, all streams' before any answer. A wrong column that
    hashes right costs no guess, and a stream's columns do so with chance 1/2^bits (one event for all of them). Then
    stream by stream it guesses, and hears the verdict. It wins by naming Δ while one stream gives.

    `settled` is how the library passes verdicts: after a failure none passes. Otherwise each stream stands alone.
    `before` lets it win by what a stream gave before another failed: an abort tells one guess to be wrong, and so
    names Δ twice as often, in a setup that gives nothing any more.
    """

    def __init__(self, columns, streams, bits=1, settled=True, before=False):
        self.columns, self.streams, self.bits, self.settled, self.before = columns, streams, bits, settled, before
        self.all = list(product((0, 1), repeat=columns))

    def states(self):
        lucky = [(Fraction(1, 2**self.bits), True), (1 - Fraction(1, 2**self.bits), False)]
        for chance, delta in uniform(self.all):
            for draws in product(lucky, repeat=self.streams):
                weight = chance
                for part, _ in draws:
                    weight *= part
                yield weight, (delta, tuple(luck for _, luck in draws))

    def choices(self, history):
        step = len(history)
        if step == 0:
            return product(self.all, repeat=self.streams)  # which columns are wrong
        if step <= self.streams:
            wrong = history[0][0][step - 1]
            lucky = history[0][1][step - 1]
            # A guess of each wrong column's bit, if its hash is wrong.
            return product(*((0, 1) if bit and not lucky else (None,) for bit in wrong))
        return self.all if step == self.streams + 1 else []

    def answer(self, state, history, choice):
        delta, lucky = state
        if not history:
            return lucky  # the hashes are drawn, and R sees which columns fit
        if len(history) > self.streams:
            return None
        right = all(guess is None or guess == bit for guess, bit in zip(choice, delta))
        failed = any(not passed for _, passed in history[1:])
        return right and not (self.settled and failed)

    def score(self, state, history):
        passed = [passed for _, passed in history[1:-1]]
        gives = all(passed) if self.settled and not self.before else any(passed)
        return int(gives and history[-1][0] == state[0])


def pairs(code, bits):
    """The page of KOS: an event of chance 1/F a pair of columns."""
    n = code.length
    return Fraction(n * (n - 1) // 2, 2**bits)


def by_rank(code, rows, bits):
    """The page of OOS: the hash is not injective on the syndromes, of rank r, with (2^r − 1)/F at most."""
    return Fraction(2 ** min(rows, code.length - code.dimension) - 1, 2**bits)


def cases():
    for code, rows, bits in [(KOS3, 2, 8), (KOS3, 2, 128), (KOS4, 2, 8)]:
        yield "KOS: columns that do not agree", f"{code.length} columns, F = 2^{bits}", Unfit(code, rows, bits).value(), "≤", pairs(code, bits)
    value = Unfit(KOS3, 2, 8, trials=5).value()
    yield "KOS by hash: the same, five trials", "3 columns, F = 2^8", value, "≤", 5 * pairs(KOS3, 8)
    # Rows of one dimension: two columns hash alike in one event.
    yield "KOS: two columns alone", "2 columns, F = 2^128", Unfit(Code((1, 1)), 1, 128).value(), "=", Fraction(1, 2**128)
    for code, rows, bits in [(PARITY, 2, 8), (SHORTENED, 2, 8), (KOS4, 3, 8)]:
        name = f"[{code.length}, {code.dimension}, {code.distance()}], {rows} rows, F = 2^{bits}"
        yield "OOS: rows that are no words", name, Unfit(code, rows, bits).value(), "≤", by_rank(code, rows, bits)
    for least in (1, 2, 3):
        value = Unfit(KOS4, 3, 8, whatever=True).value(least)
        bound = Fraction(1, 2**least) + Fraction(2**least - 1, 2**8)
        yield f"OOS: passing with syndromes of rank {least}", "[4, 1, 4], 3 rows, F = 2^8", value, "≤", bound
    yield "SoftSpoken: columns no V and r explain", "a group of 2 bits, F = 2^16", Groups(16).value(), "≤", Fraction(16**2 // 2, 2**16)
    for columns, streams in [(2, 1), (2, 2), (1, 3)]:
        name = f"{many(columns, 'bit')}, {many(streams, 'stream')}, F = 2"
        yield "KOS: Δ named, streams in flight", name, solve(Streams(columns, streams)), "=", Fraction(1, 2**columns)
    for streams in (2, 3, 4):
        # As many sets of Δ as there are bits, and one more: each failure is a path of its own.
        value, bound = solve(Streams(2, streams, bits=8, before=True)), min(streams, 2 + 1) * Fraction(1, 4)
        yield "KOS: Δ named by an abort, of what was given before", f"2 bits, {streams} streams, F = 2^8", value, "≤", bound


def flaws():
    yield "KOS: the hash is known before the columns", Unfit(KOS3, 2, 8, known=True).value(), pairs(KOS3, 8)
    yield "OOS: the hash is known before the rows", Unfit(PARITY, 2, 8, known=True).value(), by_rank(PARITY, 2, 8)
    yield "SoftSpoken: the hash is known before the columns", Groups(16, known=True).value(), Fraction(16**2 // 2, 2**16)
    yield "KOS: each stream's verdict stands alone", solve(Streams(2, 2, settled=False)), Fraction(1, 4)
    value = solve(Streams(2, 2, bits=8, settled=False, before=True))
    yield "KOS: the same, of what was given before", value, Fraction(1, 2)
