"""Small games solved exactly: the best that a cheater can do, whatever it chooses after whatever it saw.

A game has hidden states, each with a weight, and a cheater that chooses and is answered by turns. Its information
set is what it chose and saw so far, its history: `solve` weighs every choice at every one of them, and so covers
every strategy, adaptive ones and coins included (a coin is no better than the best of its sides). All numbers are
fractions.

A model is a class with these methods; nothing else of it is looked at:

    states()               pairs (weight, state) of what the cheater does not know; weights add up to 1
    choices(history)       what it may choose now; an empty list where the game is over
    answer(state, history, choice)   what it sees then; any hashable value
    score(state, history)  what the end is worth, where the game is over

A history is a tuple of pairs (choice, answer). What the cheater sees before it chooses anything is the answer to
a first choice of which there is one alone, `None`.
"""

from fractions import Fraction


def solve(game):
    """The expected score of the cheater's best strategy."""
    return _value(game, (), [(Fraction(weight), state) for weight, state in game.states()])


def strategy(game):
    """The best choices as a dictionary from histories that they lead to."""
    best = {}
    _value(game, (), [(Fraction(weight), state) for weight, state in game.states()], best)
    return best


def _value(game, history, states, best=None):
    """What `states`, all that are left, are worth together: not divided by their weight."""
    choices = list(game.choices(history))
    if not choices:
        return sum((weight * game.score(state, history) for weight, state in states), Fraction(0))
    values = []
    for choice in choices:
        seen = {}
        for weight, state in states:
            seen.setdefault(game.answer(state, history, choice), []).append((weight, state))
        parts = [_value(game, (*history, (choice, answer)), left, best) for answer, left in seen.items()]
        values.append(sum(parts, Fraction(0)))
    value = max(values)
    if best is not None:
        best[history] = choices[values.index(value)]
    return value


def uniform(states):
    """The states, each as likely as any other."""
    states = list(states)
    return [(Fraction(1, len(states)), state) for state in states]


def many(count, what):
    """`3 bits`, `1 batch`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}{'es' if what.endswith(('ch', 'ss')) else 's'}"
