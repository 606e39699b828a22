"""How two sides that meet again settle one plan: every place at which the line or a process ends (`buckets/meeting.rs`, and
`Job::meet` of the gateways).

*What is modelled*, in the order of messages and of what is written to the disk:

- Both say how they stand: nothing kept, under a plan, or ended for good; each decides by both words (`Verdict::of`).
- To settle, each counts a toss on its disk, three at most; then either learns the new plan and keeps it, in any order.
- Once both have told each other that they kept it, buckets begin: the first side counts one, the second hears of it.

The line ends between any two steps, and any number of sessions follow. `honest` explores two honest sides; `against` one
honest side and a cheater that says whatever it likes and leaves when it likes.

*What must hold*: two honest sides that meet on a whole line never find that something is lost; no side that has begun takes
another plan, and no two begin under different ones; a cheater sees three plans' keys at most.

*Why the tiny case says something.* A plan is a name, and begun is begun: what a bucket holds and how many there are does not
matter here. All states are there, as tosses are bounded.

*What is left out.* Disks that lose what was synced or an older copy put back (buckets 4.1), and the terms of a job.
"""

from typing import NamedTuple

TOSSES = 3
FLAWS = ("takes two plans for a loss", "forgets tosses", "settles once begun")


class Side(NamedTuple):
    """What is on a disk: the plan's number, whether a bucket was begun, tosses, and whether it ended for good."""

    plan: int = 0
    begun: bool = False
    tosses: int = 0
    over: bool = False

    def stands(self):
        return ("ended" if self.over and self.plan else "under" if self.plan else "fresh", self.plan)

    def tossed(self, flaw):
        """After a toss was counted; over where there are no more."""
        if self.tosses == TOSSES:
            return self._replace(over=True)
        return self if flaw == "forgets tosses" else self._replace(tosses=self.tosses + 1)


def verdict(own, peer, flaw=""):
    """What `own` does by the peer's word: go on, settle, end, or find something missing."""
    (mine, plan), (theirs, other) = own.stands(), peer
    may = not own.begun or flaw == "settles once begun"
    if mine == "under" and plan == other and theirs in ("under", "ended"):
        return "go on" if theirs == "under" else "end"
    if mine == "fresh":
        return "missing" if theirs == "ended" else "settle"
    if mine == "under" and theirs == "fresh":
        return "settle" if may else "missing"
    if mine == "under" and theirs == "under" and flaw != "takes two plans for a loss":
        return "settle" if may else "missing"
    return "missing"


def begins(first, second):
    """A first bucket: counted by the first side, and then perhaps by the second."""
    first = first._replace(begun=True)
    return [(first, second), (first, second._replace(begun=True))]


def sessions(first, second, flaw):
    """Where a session can leave both sides, and a fault that it shows."""
    if first.over or second.over:
        return [], ""
    words = verdict(first, second.stands(), flaw), verdict(second, first.stands(), flaw)
    if words == ("go on", "go on"):
        return begins(first, second), ""
    if words != ("settle", "settle"):
        return [], f"a whole line, and {words}: {first}, {second}"
    found = [(first.tossed(flaw), second), (first, second.tossed(flaw))]
    tossed = first.tossed(flaw), second.tossed(flaw)
    found.append(tossed)
    if any(side.over for side in tossed):
        return found, ""
    if first.begun or second.begun:
        return found, f"another plan for a job that has begun: {first}, {second}"
    new = max(first.plan, second.plan) + 1
    kept = [side._replace(plan=new, begun=False) for side in tossed]
    found += [(kept[0], tossed[1]), (tossed[0], kept[1]), tuple(kept)]
    return found + begins(*kept), ""


def honest(flaw=""):
    """The number of states that two honest sides reach, and the first fault; empty if there is none."""
    seen, left = set(), [(Side(), Side())]
    while left:
        sides = left.pop()
        # Names count, and not how many there were before.
        names = {plan: at for at, plan in enumerate(sorted({0, *(side.plan for side in sides)}))}
        sides = tuple(side._replace(plan=names[side.plan]) for side in sides)
        if sides in seen:
            continue
        seen.add(sides)
        found, fault = sessions(*sides, flaw)
        if fault:
            return len(seen), fault
        left += found
    return len(seen), ""


def against(flaw="", deepest=12):
    """The number of states of an honest side against a cheater of so many sessions, and the first fault."""
    seen, left = set(), [(Side(), 0, 0)]
    while left:
        side, keys, depth = left.pop()
        if (side, keys) in seen or side.over or depth == deepest:
            continue
        seen.add((side, keys))
        for word in [("fresh", 0), ("under", side.plan), ("under", -1), ("ended", side.plan), ("ended", -1)]:
            decided = verdict(side, word, flaw)
            if decided == "go on":
                left.append((side._replace(begun=True), keys, depth + 1))
            if decided == "settle":
                tossed = side.tossed(flaw)
                if tossed.over:
                    continue
                # It knows the key before the honest side keeps the plan, and may leave there.
                if side.begun or keys + 1 > TOSSES:
                    return len(seen), f"key {keys + 1} for {side}"
                new = tossed._replace(plan=side.plan + 1)
                left += [(tossed, keys + 1, depth + 1), (new, keys + 1, depth + 1)]
    return len(seen), ""
