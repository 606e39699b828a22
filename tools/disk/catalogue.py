"""The operations of the command that write, for `operations.py`."""

import json
import shutil
import signal
import subprocess
import time
import zipfile

from operations import CUT, Operation, Said, anew

PEER = ["--connect-timeout", "20", "--timeout", "20"]
WHO = ["--identity", "own.key", "--peer", "other.pub"]
LISTEN, CONNECT = ["--listen", "ADDRESS", *WHO, *PEER], ["--connect", "ADDRESS", *WHO, *PEER]
TABLE = ["--input", "table.csv", "--key", "email"]


def rows(numbers):
    return "email,amount\n" + "".join(f"user{number}@example.com,{number}\n" for number in numbers)


def keys(case):
    """A key on either side, each known to the other; tables with 20 keys in common."""
    for mine, theirs in ((case.w, case.p), (case.p, case.w)):
        case.good(["keygen", "--out", "own.key"], mine.name)
        shutil.copy(mine / "own.pub", theirs / "other.pub")
    (case.w / "table.csv").write_text(rows(range(40)))
    (case.p / "table.csv").write_text(rows(range(20, 50)))


def opens(*words):
    """Whether the command takes an output."""
    return lambda case, name: case.run([*words, name] + (["--identity", "own.key"] if "pool" in words else [])).code == 0


def operations():
    yield Operation("keygen", ["keygen", "--out", "new.key"], ["new.key", "new.pub"], is_whole=opens("fingerprint"))
    yield Operation(
        "successor", ["keygen", "--out", "new.key", "--successor-of", "own.key"], ["new.key", "new.pub"], None, keys,
        opens("fingerprint"), check=own_key_stays,
    )  # fmt: skip
    yield Operation("key followed", RECEIVE, [], ["psi", *LISTEN, *TABLE, "--result", "peer", "--reveal", "count"], followed, check=is_remembered)
    yield Meeting("invite", "w")
    yield Meeting("join", "p")
    yield from intersections()
    yield from pools()
    yield from tags()
    yield from nisc()
    yield from services()


RECEIVE = ["psi", *CONNECT, *TABLE, "--result", "me", "--reveal", "count"]


def followed(case):
    """The peer has another key, which the one that it had names."""
    keys(case)
    case.good(["keygen", "--out", "new.key", "--successor-of", "own.key"], "p")
    shutil.copy(case.p / "own.pub", case.w / "other.pub")
    (case.p / "new.key").replace(case.p / "own.key")
    (case.p / "new.pub").replace(case.p / "own.pub")


def is_remembered(case, said):
    """Who has stolen the old key cannot name another one, after whatever crash."""
    memory = case.w / "own.successions"
    if said.code == 0 and (not memory.exists() or len(memory.read_text().splitlines()[-1]) != 140):
        yield "which key follows which is not remembered"


class Meeting(Operation):
    """An invitation that is taken up; `host` is the side that invites."""

    def __init__(self, name, host):
        super().__init__(name, None, ["new.key", "new.pub", "peer.pub"], is_whole=opens("fingerprint"))
        self.host, self.guest = (host, "p" if host == "w" else "w")

    def perform(self, case, faulty=False):
        words = ["--json", "invite", "--listen", "ADDRESS", "--minutes", "1", "--identity", "new.key"]
        inviting = case.start(words, self.host, faulty and self.host == "w")
        line = inviting.stdout.readline()
        asked = Said(0, "", "")
        if line.startswith("{"):
            join = ["join", json.loads(line)["code"], "--connect", "ADDRESS", "--minutes", "1", "--identity", "new.key"]
            asked = case.run(join, self.guest, faulty and self.guest == "w")
        try:
            out, err = inviting.communicate(timeout=1 if asked.code else 20)
        except subprocess.TimeoutExpired:
            # One whose guest did not come waits for another.
            inviting.kill()
            out, err = inviting.communicate()
        return Said(inviting.returncode, out, err) if self.host == "w" else asked

    def after(self, case, said):
        """A code is spent: they meet again with a new one, and with the keys that they have."""
        for folder in (case.w, case.p):
            (folder / "peer.pub").unlink(missing_ok=True)
        done = self.perform(case)
        if done.code:
            yield f"again: exit code {done.code}: {done.err.strip()[-300:]}"
        elif (case.w / "peer.pub").read_text().split()[1] != (case.p / "new.pub").read_text().split()[1]:
            yield "again: it is not the partner's key"


def own_key_stays(case, _):
    for name in ("own.key", "own.pub"):
        if case.run(["fingerprint", name]).code:
            yield f"{name} cannot be read any more"


def is_identified(case, name):
    """Whether an output is the whole table behind identifiers, which are others in each run."""
    columns = [line.partition(",")[::2] for line in (case.w / name).read_text().splitlines()]
    table = "".join(f"{rest}\n" for _, rest in columns)
    return table == (case.w / "table.csv").read_text() and all(len(one) == 32 for one, _ in columns[1:])


def intersections():
    send = ["psi", *LISTEN, *TABLE, "--result", "peer"]
    take = ["psi", *CONNECT, *TABLE, "--result", "me"]
    for kind in ("csv", "csv.gz", "parquet", "arrow", "xlsx"):
        outputs = [f"{name}.{kind}" for name in ("both", "rest", "all")]
        words = [w for name, out in zip(("output", "output-rest", "output-all"), outputs) for w in (f"--{name}", out)]
        operation = Operation(f"psi to {kind}", [*take, *words], outputs, send, keys)
        if kind == "xlsx":
            operation.whole = lambda case, out, operation=operation: cells(case.w / out) == cells(operation.honest.w / out)
        yield operation
    link = ["link", *CONNECT, *TABLE, "--output", "linked.csv"]
    other = ["link", *LISTEN, *TABLE, "--output", "linked.csv", "--overwrite"]
    yield Operation("link", link, ["linked.csv"], other, keys, is_identified)
    over = [*take, "--overwrite", "--output", "both.csv"]
    yield Operation("psi over an old file", over, ["both.csv"], send, keys, old=["both.csv"])
    gives = [*send, "--reveal", "payload", "--give", "amount"]
    yield Operation("psi payload", [*take, "--reveal", "payload:amount", "--output", "both.csv"], ["both.csv"], gives, keys)
    spill = ["--memory", "64MiB", "--buckets", "2"]
    yield Operation("psi in buckets", [*take, *spill, "--output", "both.csv"], ["both.csv"], [*send, *spill], keys)
    resume = [*spill, "--resume", "kept"]
    yield Operation(
        "psi resumed", [*take, *resume, "--output", "both.csv"], ["both.csv"], [*send, *resume], keys, again=resumed,
        check=is_counted, keeps="kept",
    )  # fmt: skip


def is_counted(case, said):
    """What the peer has settled was tossed here, and that was counted: after a power cut too."""
    if said.code == CUT and (case.p / "kept" / "plan").exists() and not (case.w / "kept" / "tosses").exists():
        yield "the peer has settled a run that leaves no trace here"


def resumed(case, operation):
    """Goes on with both sides as they are; where the run was over on one of them, both begin anew."""
    if (case.w / "both.csv").exists() and not (case.w / "kept").exists():
        return Said(0, "", "")
    for _ in range(3):
        said = operation.perform(case)
        if said.code == 0:
            return said
    shutil.rmtree(case.w / "kept", ignore_errors=True)
    return anew(case, operation)


def pools():
    sender, receiver = ["--role", "sender"], ["--role", "receiver"]
    make = ["ot", "pool", "make", "--count", "4096", "--file", "a.pool"]
    yield Operation(
        "pool made", [*make, *LISTEN, *sender], ["a.pool"], [*make, *CONNECT, *receiver], keys, opens("ot", "pool", "info")
    )
    use = ["ot", "--kind", "cot", "--count", "64", "--pool", "a.pool", "--out", "share.npz"]
    for ours, theirs in ((sender, receiver), (receiver, sender)):

        def prepare(case, ours=ours, theirs=theirs):
            keys(case)
            made = Operation("", [*make, *LISTEN, *ours], [], [*make, *CONNECT, *theirs]).perform(case)
            assert made.code == 0, made.err

        yield Operation(
            f"pool used by its {ours[1]}", [*use, *LISTEN, *ours], ["share.npz"], [*use, *CONNECT, *theirs], prepare,
            is_share, used_again,
        )  # fmt: skip
    run = ["ot", "--count", "64"]
    share = [*run, *LISTEN, *sender, "--out", "share.npz"]
    yield Operation("transfers", share, ["share.npz"], [*run, *CONNECT, *receiver], keys, is_share)
    gates = ["eval", "pool", "make", "--gates", "64", "--rows", "2", "--file", "g.pool"]
    garbler, evaluator = ["--role", "garbler"], ["--role", "evaluator"]
    made = Operation(
        "gates made", [*gates, *LISTEN, *garbler], ["g.pool"], [*gates, *CONNECT, *evaluator], keys,
        opens("eval", "pool", "info"),
    )  # fmt: skip
    yield made

    def with_gates(case):
        keys(case)
        for side in (case.w, case.p):
            (side / "n.csv").write_text("n\n7\n8\n")
        assert made.perform(case).code == 0

    add = ["eval", "add8", "--batch", "--pool", "g.pool", "--input", "n.csv", "--output", "sum.csv"]
    yield Operation(
        "gates used", [*add, *LISTEN, *garbler], ["sum.csv"], [*add, *CONNECT, *evaluator], with_gates, again=gates_again
    )


def cells(path):
    """The parts of a workbook but for that with the time at which it was written; nothing of half a file."""
    try:
        with zipfile.ZipFile(path) as book:
            return {name: book.read(name) for name in book.namelist() if name != "docProps/core.xml"}
    except zipfile.BadZipFile:
        return path


def is_share(case, name):
    with zipfile.ZipFile(case.w / name) as share:
        return share.testzip() is None


def blocks(path):
    """The blocks of a share of correlations: no two are the same."""
    if not path.exists():
        return set()
    with zipfile.ZipFile(path) as share:
        bytes_of = share.read("v.npy" if "v.npy" in share.namelist() else "w.npy")[-64 * 16 :]
    return {bytes_of[at : at + 16] for at in range(0, len(bytes_of), 16)}


def used_again(case, operation):
    """The side that is behind catches up; what was served is not served again, on either side."""
    shares = [folder / "share.npz" for folder in (case.w, case.p)]
    before = [blocks(share) for share in shares]
    info = ["--json", "ot", "pool", "info", "a.pool", "--identity", "own.key"]
    at = [json.loads(case.good(info, where).out)["position"] for where in ("w", "p")]
    for where, position in zip(("w", "p"), at):
        if position < max(at):
            case.good(["ot", "pool", "skip", "a.pool", "--to", str(max(at)), "--identity", "own.key"], where)
    for share in shares:
        share.unlink(missing_ok=True)
    said = operation.perform(case)
    if said.code:
        return said
    for earlier, share in zip(before, shares):
        if len(blocks(share)) != 64 or earlier & blocks(share):
            raise AssertionError(f"{share.parent.name} was served {len(earlier & blocks(share))} correlations twice")
    return said


def gates_again(case, operation):
    """A pool of gates serves one run: it is used, or as it was, and then it serves. Where the mark cannot be written, what
    it holds is gone."""
    used = case.run(["eval", "pool", "info", "g.pool", "--identity", "own.key"])
    if used.code and "used before" not in used.err and "make a new one on both sides" not in used.err:
        raise AssertionError(f"neither used nor whole: {used.err}")
    if used.code:
        (case.w / "g.pool").unlink()
        shutil.copy(operation.before.w / "g.pool", case.w)
    return anew(case, operation)


def tags():
    seal = ["--out", "t.tags", "--private", "t.oprf", "--identity", "own.key"]
    publish = ["tags", "publish", *TABLE, *seal]
    is_whole = lambda case, name: case.run(
        ["tags", "info", name, "--check"] if name == "t.tags" else ["tags", "publish", *TABLE, *seal]
    ).code == (0 if name == "t.tags" else 3)
    yield Operation("tags published", publish, ["t.tags", "t.oprf"], None, keys, is_whole)

    def published(case):
        keys(case)
        case.good(publish)
        shutil.copy(case.w / "t.tags", case.p / "t.tags")

    yield Operation(
        "tags rotated", ["tags", "rotate", "--overwrite", *TABLE, *seal], ["t.tags", "t.oprf"], None, published, is_whole,
        again=lambda case, operation: operation.perform(case),
    )  # fmt: skip
    serve = ["tags", "serve", "--private", "t.oprf", *LISTEN]
    query = ["tags", "query", "--tags", "t.tags", *TABLE, *CONNECT, "--output", "both.csv"]
    yield Operation("tags served", serve, [], query, published)

    def other_way(case):
        published(case)
        case.w.rename(case.folder / "x")
        case.p.rename(case.w)
        (case.folder / "x").rename(case.p)

    yield Operation("tags queried", query, ["both.csv"], serve, other_way)


def nisc():
    pairs = "".join(f"{2 * i:032x} {2 * i + 1:032x}\n" for i in range(5))
    ask = ["nisc", "ask", "--key", "bob.key", "--choices", "choices", "--out", "question"]
    answer = ["nisc", "answer", "--public", "bob.pub", "--key", "alice.key", "--out", "answer"]
    reply = ["nisc", "reply", "--key", "alice.key", "--public", "bob.pub", "--question", "question"]
    reply += ["--messages", "pairs", "--out", "reply"]
    opened = ["nisc", "open", "--key", "bob.key", "--choices", "choices", "--answer", "answer"]
    opened += ["--question", "question", "--reply", "reply", "--out", "got"]
    steps = [
        ("keygen", ["nisc", "keygen", "--count", "5", "--out", "bob.key"], ["bob.key", "bob.pub"]),
        ("answer", answer, ["alice.key", "answer"]),
        ("ask", ask, ["question"]),
        ("reply", reply, ["reply"]),
        ("open", opened, ["got"]),
        ("expand", ["nisc", "expand", "--key", "alice.key", "--public", "bob.pub", "--out", "s.npz"], ["s.npz"]),
    ]

    def prepare(count):
        def done(case):
            (case.w / "choices").write_text("01101\n")
            (case.w / "pairs").write_text(pairs)
            for _, words, _ in steps[:count]:
                case.good(words)

        return done

    for at, (name, words, outputs) in enumerate(steps):
        # An expansion is of a key that served nothing else.
        before = 2 if name == "expand" else at
        operation = Operation(f"nisc {name}", words, outputs, None, prepare(before), None, again=asked_again)
        operation.whole = lambda case, out, operation=operation: is_like(case, operation, out)
        yield operation
    asked = ["nisc", "eval", "ask", "add8", "--input", "1", "--key", "asked.key", "--out", "asked"]
    replied = ["nisc", "eval", "reply", "add8", "--input", "2", "--question", "asked", "--out", "replied"]
    for name, words, outputs, before in [
        ("ask", asked, ["asked.key", "asked"], lambda case: None),
        ("reply", replied, ["replied"], lambda case: case.good(asked)),
    ]:
        operation = Operation(f"nisc eval {name}", words, outputs, None, before, None)
        operation.whole = lambda case, out, operation=operation: is_like(case, operation, out)
        yield operation


def asked_again(case, operation):
    """A power cut can leave the mark of a message and not the message: the key serves no more. No other fault does."""
    said = anew(case, operation)
    if said.code == 3 and "this key" in said.err and case.plan.startswith("crash"):
        for key in case.w.glob("*.key"):
            shutil.copy(operation.before.w / key.name, key)
        return anew(case, operation)
    return said


def is_like(case, operation, name):
    """As long as in an honest run; what says more than that is the next step."""
    return (case.w / name).stat().st_size == (operation.honest.w / name).stat().st_size


POLICY = """version = 1
listen = "ADDRESS"
identity = "own.key"
state = "state"
[peers.bob]
key = "other.pub"
[sources.t]
input = "table.csv"
key = ["email"]
rows_in_total = 10000
aggregate_runs = 1
[jobs.match]
source = "t"
allow = ["bob"]
reveal = ["rows"]
result = ["peer"]
max_peer_keys = 1000
runs_a_day = 99
"""


REQUEST = ["request", "match", "--connect", "ADDRESS", *WHO, "--connect-timeout", "3", *TABLE, "--yes", "--overwrite", "--output", "both.csv"]


class Service(Operation):
    """A service and one request; `where` is the side whose disk fails."""

    def __init__(self, name, where):
        outputs = ["both.csv"] if where == "client" else []
        super().__init__(name, None, outputs, None, keys, None, lambda case, _: self.perform(case), self.records)
        self.sides = ("w", "p") if where == "service" else ("p", "w")

    def perform(self, case, faulty=False):
        service, client = self.sides
        (case.folder / service / "policy.toml").write_text(POLICY.replace("ADDRESS", case.address))
        log = (case.folder / "log").open("w+")
        words = ["--json", "serve", "--policy", "policy.toml"]
        serving = case.start(words, service, faulty and service == "w", stdout=log, stderr=subprocess.PIPE)
        end = time.monotonic() + 20
        while serving.poll() is None and '"started"' not in (case.folder / "log").read_text() and time.monotonic() < end:
            time.sleep(0.01)
        asked = Said(None, "", "")
        if serving.poll() is None:
            asked = case.run(REQUEST, client, faulty and client == "w")
            serving.send_signal(signal.SIGTERM)
        try:
            _, err = serving.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            serving.kill()
            serving.communicate()
            return Said(-9, "", "the service does not end")
        served = Said(serving.returncode, "", err)
        if faulty and service == "w" or served.code:
            return served
        return asked

    def records(self, case, said):
        """From files alone: no result without its record and its charge; records that verify, and agree."""
        service, client = (case.folder / side for side in self.sides)
        served, asked = runs_of(service / "state/records"), runs_of(client / "own.records")
        charged = charges(service / "state/ledger")
        begun = [run for run, outcome in asked.items() if outcome != "not begun"]
        if (client / "both.csv").exists() and not begun:
            yield "a result without its record"
        for run in begun:
            # Of several runs, those that broke off gave no result.
            is_done = len(begun) == 1 or asked[run] in ("complete", "not signed by the service")
            if is_done and (client / "both.csv").exists() and run not in charged:
                yield f"run {run} is not charged"
            if run not in served:
                yield f"the service has no record of run {run}"
        if said.code == 0 and served and not list(case.folder.glob("*/**/pending/*.json")):
            against = ["--against", str(client / "own.records"), "--against-key", "other.pub"]
            verified = case.run(["audit", "verify", "state/records", "--key", "own.pub", *against], service.name)
            if verified.code:
                yield f"records: {verified.err.strip()}"


def runs_of(folder):
    """Runs and outcomes in a chain of records, with those that are pending."""
    found = {}
    chain = folder / "records.jsonl"
    lines = chain.read_text().splitlines() if chain.exists() else []
    for path in (folder / "pending").glob("*.json") if folder.exists() else ():
        lines += path.read_text().splitlines()[:1]
    for line in lines:
        try:
            common = json.loads(line)["common"]
        except (ValueError, KeyError):
            continue
        found[common["run"]] = common["outcome"]
    return found


def charges(ledger):
    """Rows that are charged, by run."""
    found = {}
    for line in ledger.read_text().splitlines() if ledger.exists() else ():
        try:
            entry = json.loads(line.split(" ", 1)[1])
        except (ValueError, IndexError):
            continue
        if "charge" in entry:
            found[entry["charge"]["run"]] = entry["charge"]["rows"]
        if "returned" in entry:
            found.pop(entry["returned"]["run"], None)
    return found


def services():
    yield Service("serve", "service")
    yield Service("request", "client")

    def recorded(case):
        keys(case)
        Service("", "client").perform(case)

    export = ["audit", "export", "own.records", "--peer", "other.pub", "--output", "export.jsonl"]
    yield Operation("audit export", export, ["export.jsonl"], None, recorded)
