"""Every interleaving of a lobby's threads: the one that waits, and one for each connection (`tacit-net/src/lobby.rs`).

*What is modelled*, each step one that no other thread sees half of:

- A connection's thread ends TLS, hears the greeting, looks whether a session is open, answers, sends its report, wakes
  the waiting thread (`Desk::greet`, and the end of the thread in `Lobby::receive`).
- The waiting thread takes one report after the other; receives what is at the port, at most `places` at once, for which
  the oldest makes room that has proved no key; closes what is late; and, if the pipe is empty, nobody is at the port and
  no deadline has passed, sleeps. What wakes it is cleared before reports are taken again (`Lobby::next`).
- Once a connection opened the session, `taken` is set, and further channels are awaited (`first`, `further`).

Connections come at any time; each that is being received may become late, or be closed under its thread's hands.

*What must hold*: nobody sleeps over a report; no report of a connection that was closed is heard; one session is
returned, and never a second; a peer that has proved its key is not driven out while a stranger holds a place; whoever
was received is heard, or counted as a stranger, once; no more than `places` are held.

*Why the tiny case says something.* A step touches one connection, the reports or the pipe, and each order of any two
connections' steps is there; a third one and a second place show whom room is made by.

*What is left out.* Time but for deadlines, the relay, new options in between, and the bytes of greetings.
"""

from itertools import combinations_with_replacement
from typing import NamedTuple

# A stranger, one that opens a session, a further channel of it, one whose settings differ.
KINDS = ("stranger", "opens", "joins", "differs")


class Connection(NamedTuple):
    """`at`: away, port, tls, hello, answer, report, wake, gone; `says` is what its report will say."""

    kind: str
    at: str = "away"
    held: bool = False
    known: bool = False
    closed: bool = False
    late: bool = False
    says: str = ""


class State(NamedTuple):
    """`main`: take, receive, close, look, sleep, clear, or done; `order` is of places, the oldest first."""

    connections: tuple
    main: str = "take"
    reports: tuple = ()
    pipe: bool = False
    order: tuple = ()
    taken: bool = False
    opened: int = -1
    joined: bool = False
    turned: tuple = ()
    fault: str = ""

    def with_connection(self, number, **changes):
        one = self.connections[number]._replace(**changes)
        return self._replace(connections=(*self.connections[:number], one, *self.connections[number + 1 :]))


class Lobby:
    """The steps, with one of the flaws of `FLAWS` or none."""

    def __init__(self, places, flaw=""):
        self.places, self.flaw = places, flaw

    def steps(self, state):
        """Every state that may come next."""
        for number, one in enumerate(state.connections):
            if one.at == "away":
                yield state.with_connection(number, at="port")
            elif one.at not in ("port", "gone"):
                yield self.greets(state, number, one)
            if one.held and not one.late:
                yield state.with_connection(number, late=True)
        if state.main not in ("done", "asleep") and not state.fault:
            yield self.waits(state)
        if state.main == "asleep" and self.wakes(state):
            yield state._replace(main="clear")

    def greets(self, state, number, one):
        """A step of a connection's thread."""
        lost = one.closed or one.kind == "stranger"
        second = {"report": "wake", "wake": "gone"}
        if self.flaw == "wakes before it reports":
            second = {"report": "gone", "wake": "report"}
        first = "wake" if self.flaw == "wakes before it reports" else "report"
        if one.at == "tls":
            if lost:
                return state.with_connection(number, at=first, says="lost")
            return state.with_connection(number, at="hello", known=True)
        if one.at == "hello":
            if one.closed:
                return state.with_connection(number, at=first, says="lost")
            if one.kind != "opens":
                return state.with_connection(number, at=first, says=one.kind)
            if state.taken:
                return state.with_connection(number, at=first, says="lost")
            return state.with_connection(number, at="answer")
        if one.at == "answer":
            return state.with_connection(number, at=first, says="lost" if one.closed else "opens")
        after = state.with_connection(number, at=second[one.at])
        if one.at == "report":
            return after._replace(reports=(*state.reports, number))
        return after._replace(pipe=True)

    def waits(self, state):
        """A step of the waiting thread."""
        after = {"receive": "close", "close": "look", "clear": "take"}
        if self.flaw == "clears after it took the reports":
            after = {"receive": "close", "close": "look", "clear": "receive"}
        if state.main == "take":
            if not state.reports:
                to = "clear" if self.flaw == "clears after it took the reports" else "receive"
                return state._replace(main=to)
            return self.hears(state._replace(reports=state.reports[1:]), state.reports[0])
        if state.main == "receive":
            return self.receives(state)._replace(main=after["receive"])
        if state.main == "close":
            for number in state.order:
                if state.connections[number].late:
                    state = self.turns(self.leaves(state, number, closed=True), number)
            return state._replace(main=after["close"])
        if state.main == "look":
            return state._replace(main="asleep")
        return state._replace(main=after["clear"], pipe=False)

    @staticmethod
    def wakes(state):
        at_port = any(one.at == "port" for one in state.connections)
        return state.pipe or at_port or any(one.late and one.held for one in state.connections)

    def hears(self, state, number):
        one = state.connections[number]
        if not one.held:
            if self.flaw == "hears whom it has closed" and one.says == "opens" and state.opened < 0:
                return state._replace(fault="a connection that was closed opened the session")
            return state
        state = self.leaves(state, number)
        if one.says == "lost":
            return self.turns(state, number)
        if one.says == "differs":
            return state._replace(main="done")
        if one.says == "joins":
            return state._replace(joined=True, main="done" if state.opened >= 0 else state.main)
        if state.opened >= 0:
            if self.flaw == "returns whoever opens":
                return state._replace(fault="a second session")
            return state
        done = "done" if state.joined else state.main
        return state._replace(opened=number, taken=True, main=done)

    def receives(self, state):
        for number, one in enumerate(state.connections):
            if one.at != "port":
                continue
            if len(state.order) >= self.places and self.flaw != "makes no room":
                unknown = [old for old in state.order if not state.connections[old].known]
                if self.flaw == "drives out the oldest":
                    unknown = []
                oldest = (unknown or list(state.order))[0]
                if state.connections[oldest].known and any(not state.connections[old].known for old in state.order):
                    return state._replace(fault="a peer that has proved its key made room for a stranger")
                state = self.turns(self.leaves(state, oldest, closed=True), oldest)
            state = state.with_connection(number, at="tls", held=True)._replace(order=(*state.order, number))
        return state._replace(fault="more than all places are held") if len(state.order) > self.places else state

    @staticmethod
    def leaves(state, number, closed=False):
        state = state._replace(order=tuple(other for other in state.order if other != number))
        return state.with_connection(number, held=False, closed=closed or state.connections[number].closed)

    @staticmethod
    def turns(state, number):
        twice = number in state.turned
        state = state._replace(turned=tuple(sorted({*state.turned, number})))
        return state._replace(fault="a stranger that counts twice") if twice else state


FLAWS = (
    "wakes before it reports",
    "clears after it took the reports",
    "hears whom it has closed",
    "returns whoever opens",
    "drives out the oldest",
    "makes no room",
)


def judged(lobby, state, has_next):
    """What is wrong with a state, or nothing."""
    if state.fault:
        return state.fault
    if state.main == "asleep" and not lobby.wakes(state) and state.reports:
        # Some thread may still be about to wake it.
        if all(one.at in ("away", "gone", "port") for one in state.connections):
            return "it sleeps over a report"
    if not has_next:
        for number, one in enumerate(state.connections):
            heard = one.says in ("opens", "joins", "differs") and not one.held
            if state.main != "done" and not heard and number not in state.turned:
                return "a connection that nobody heard"
    return ""


def explore(kinds, flaw=""):
    """How many states there are, with a place less than connections, and what is wrong with one, if anything is."""
    lobby = Lobby(len(kinds) - 1, flaw)
    start = State(tuple(Connection(kind) for kind in kinds))
    seen, todo = {start}, [start]
    while todo:
        state = todo.pop()
        following = set() if state.fault else set(lobby.steps(state))
        if wrong := judged(lobby, state, bool(following)):
            return len(seen), wrong
        todo += following - seen
        seen |= following
    return len(seen), ""


# All pairs, and three of which two are the peer's.
CASES = [*combinations_with_replacement(KINDS, 2), ("stranger", "opens", "opens")]
