#!/usr/bin/env python3
"""Checks how the sources stand to each other. It fails on

- a reference upwards: a crate that asks for, or names, a crate which is not on a floor below its own;
- a reference from the kernels, `tacit-crypto/src/simd/`, to anything of their crate but what `SHARED` lists;
- `unsafe` in any file of Rust but the kernels' and those that `REQUESTS` names, tests and tools included;
- a circle between the modules of a crate, a module being a file: paths in `use` and in code count, tests do not.
  A parent that only re-exports its children refers to none of them, and a child lies inside its parents: what it
  takes from them does not count either;
- a constant that has two values: one name, defined in two modules (of any crates) with different right-hand sides;
- a file of the sources that is longer than `MOST_LINES`, kernels apart;
- a decision by the name of a protocol, outside the catalogue: what differs between protocols stands in their entries;
- an option of the command (`--name`) in what a library crate says: errors there name parameters, and the command
  names its options.

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
"""

import re
import sys
import tomllib
import zlib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The house, from the ground up: a crate may use those on the floors below its own.
FLOORS = [
    ["tacit-crypto"],
    ["tacit-net", "tacit-roted", "tacit-data", "tacit-query"],
    ["tacit-ot"],
    ["tacit-store"],
    ["tacit-2pc"],
    ["tacit-lang"],
    ["tacit-psi"],
    ["tacit"],
    ["tacit-console", "tacit-serve", "tacit-ui"],
    ["tacit-bench", "tacit-fuzz"],
    ["tacit-cli", "tacit-py"],
]

# The crates whose user types options.
COMMANDS = {"tacit-console", "tacit-bench", "tacit-ui", "tacit-cli"}

# Where the kernels live, and the plain types of their crate that they may name.
KERNELS = "tacit-crypto/src/simd/"
SHARED = {
    "Block": "128 bits: what kernels read and write",
    "Poly": "coefficients: what the ring's kernels read and write",
    "Ring": "the tables of a ring's transform",
    "wipe_blocks": "memory is wiped before it is given back, by all cores",
}

# Where else `unsafe` may be.
REQUESTS = ("tools/valgrind/src/request.rs",)

# Names that a module may give a value of its own, because only that module says them: by reason.
OWN = {
    "what a module's own tables, marks and domains are": "DOMAIN MARK RATIO",
    "how much a module handles at a time": """BATCH BITS BLOCK BUFFER CHUNK EARLY GROUP LINE LENGTH MOST PIECE PIECES
        ROWS SHORT STEP STRIDE TICK TILE WINDOW WORDS ENOUGH FIRST""",
    "the lanes, masks and units of a kernel": "BYTES BOTTOM HUGE LANES LOW N NARROW W WIDE",
    "where things lie in a module's own file or message": """BODY BURNT CHECK ENTRY HEADER KEY MAGIC OPENING PAD PEER
        SALT TAG USED""",
    "what a module declares of its own": """AFTER LINKS NAME NAMES OUTPUTS PHASES PROTOCOL PROTOCOLS
        PURPOSE TABLES TABLE_4""",
    "the version of a module's messages, and what its hash is separated by": "CONTEXT VERSION",
    "the most that a module takes": "LARGEST_RUN LONGEST MAX_ELEMENTS MAX_FILE MOST_BITS MOST_GROUPS",
    "a letter, a mark or a measure of the module's own": "COLUMNS FIELD K NONE",
}

MOST_LINES = 900

# What lines count. A number before one of these is written by `counted`, so that there is `1 row` and `2 rows`.
COUNTED = """answers attempts blocks bits buckets bytes calls candidates cells choices clients columns connections
    copies correlations days elements entries faults files gates groups hours inputs jobs keys lines matches messages
    minutes months numbers outputs pages pairs peers places problems queries questions records requests rounds rows runs
    samples seconds sessions sets strangers tags threads times tries triples values words OTs"""
# Strings that have such a number all the same, by how they go on from there.
UNCOUNTED = {
    "what is hashed, sent or stored, and names that figures have": ["columns, nfc ", 'times"', 'rows",', "threads {} link ",
        "threads, 10^", "threads, {link}", "bits, modulus"],
    "never 1": ["bits: {} is wanted", "bits a side", "copies", "gates, more than", "gates from a slice",
        "numbers of {", "bytes are not a whole", "rows do not fit", "values expected", "calls, and", "files ({}"],
    "no numbers": ["answers lookups", "keys look like", "peers that keep", "columns is named"],
    "fractions": ["times what"],
}

# Protocols whose names are also words of a user: kinds of result, parameters.
ALSO_WORDS = {"payload", "circuit", "protocol", "pool", "post-quantum"}

# Faults that stand until somebody mends them, by how they begin. One that is gone must leave the list, too.
OPEN_FAULTS = []

TOKEN = re.compile(r"\w+(?:\.\d\w*)?|::|=>|->|\n|\S")
RAW_STRING = re.compile(r'\b(?:b|c)?r(#*)"')
CHARACTER = re.compile(r"'(?:\\(?:x[0-9a-fA-F]{2}|u\{[0-9a-fA-F_]+\}|.)|[^\\'\n])'")
ITEM = {"struct", "enum", "trait", "fn", "const", "static", "type", "union", "macro_rules"}
OPEN, CLOSE = "([{", ")]}"


def text(said):
    """What stands for a string: its checksum, so that two constants' values can be compared."""
    return f'"{zlib.crc32(said.encode())}"' + "\n" * said.count("\n")


def without_text(source):
    """The source without its comments, its strings and its characters; every line stays where it was."""
    out, at, end = [], 0, len(source)
    while at < end:
        two = source[at : at + 2]
        if two == "//":
            stop = source.find("\n", at)
            at = end if stop < 0 else stop
        elif two == "/*":
            depth, start = 1, at
            at += 2
            while at < end and depth:
                two = source[at : at + 2]
                depth += (two == "/*") - (two == "*/")
                at += 2 if two in ("/*", "*/") else 1
            out.append("\n" * source.count("\n", start, at))
        elif raw := (RAW_STRING.match(source, at) if source[at] in "bcr" else None):
            stop = source.find('"' + raw[1], raw.end())
            stop = end if stop < 0 else stop + 1 + len(raw[1])
            out.append(text(source[at:stop]))
            at = stop
        elif source[at] == '"':
            start = at
            at += 1
            while at < end and source[at] != '"':
                at += 2 if source[at] == "\\" else 1
            at += 1
            out.append(text(source[start:at]))
        elif source[at] == "'" and (char := CHARACTER.match(source, at)):
            out.append("0")
            at = char.end()
        else:
            out.append(source[at])
            at += 1
    return "".join(out)


def tokens(source):
    """The source's words and signs, each with its line."""
    line, found = 1, []
    for match in TOKEN.finditer(without_text(source)):
        if match[0] == "\n":
            line += 1
        else:
            found.append((match[0], line))
    return found


@dataclass(eq=False)
class Module:
    """A module: of a file, or inside one."""

    name: str
    file: Path
    parent: "Module | None"
    # Whether it is a file's module.
    own_file: bool
    children: dict = field(default_factory=dict)
    # What `use` brings in: the name, and the path that it stands for.
    imports: dict = field(default_factory=dict)
    items: set = field(default_factory=set)
    # Every path that the module says: segments, line, whether a `use` that re-exports says it.
    paths: list = field(default_factory=list)
    # Its constants that belong to no type: name, value, line.
    constants: list = field(default_factory=list)

    def home(self):
        """The file's module that this one lies in."""
        return self if self.own_file else self.parent.home()

    def root(self):
        return self if self.parent is None else self.parent.root()

    def label(self):
        return self.name if self.parent is None else f"{self.parent.label()}::{self.name}"


class Reader:
    """Reads one file's tokens into its module."""

    def __init__(self, module, root):
        self.words = tokens(module.file.read_text())
        self.root = root
        self.at = 0
        # Where the macro ends that is being read: what is relative in it is so where it is used.
        self.macro_end = 0
        self.body(module, None)

    def word(self, ahead=0):
        at = self.at + ahead
        return self.words[at][0] if at < len(self.words) else ""

    def line(self):
        return self.words[min(self.at, len(self.words) - 1)][1]

    def group(self):
        """The words inside the bracket that is next, which is passed over."""
        depth, start = 0, self.at
        while self.at < len(self.words):
            depth += (self.word() in OPEN) - (self.word() in CLOSE)
            self.at += 1
            if depth == 0:
                break
        return [word for word, _ in self.words[start + 1 : self.at - 1]]

    def skip_item(self):
        """Passes over the item that is next: attributes, and all up to its semicolon or its body's end."""
        while self.word() == "#":
            self.at += 1
            self.group()
        until = {";"} if self.word() in ("use", "const", "static", "let") else {";", "{"}
        while self.at < len(self.words):
            if self.word() in until:
                break
            if self.word() in OPEN:
                self.group()
            else:
                self.at += 1
        if self.word() == "{":
            self.group()
        else:
            self.at += 1

    def body(self, module, owner):
        """Reads up to the brace that closes this body; `owner` says whose it is, None for a module's own."""
        path = None
        while self.at < len(self.words):
            word = self.word()
            if word == "}":
                self.at += 1
                return
            if word == "#":
                self.at += 2 if self.word(1) == "!" else 1
                inside = self.group()
                if inside[:4] in (["cfg", "(", "test", ")"], ["cfg", "(", "all", "("]) and "test" in inside:
                    self.skip_item()
                elif inside[:1] == ["path"]:
                    path = True
                continue
            if word == "mod" and self.word(2) in (";", "{"):
                self.child(module, path)
                path = None
            elif word == "use" and self.word(1) not in ("<", "$"):
                self.use(module)
            elif word == "const" and self.word(2) == ":" and self.word(-1) not in ("<", ",") and re.fullmatch(r"[A-Z][A-Z0-9_]*", self.word(1)):
                self.constant(module, owner)
            elif word in ("impl", "trait") and owner is None:
                self.until_body(module)
                self.body(module, word)
            elif word in ITEM and owner is None:
                name = self.word(2) if word == "macro_rules" else self.word(1)
                module.items.add(name)
                if word == "macro_rules":
                    start, self.at = self.at, self.at + 3
                    self.group()
                    self.at, self.macro_end = start, self.at
                self.at += 1
            elif word == "{":
                self.at += 1
                self.body(module, owner or "code")
            elif re.match(r"[A-Za-z_]", word):
                self.path(module)
            else:
                self.at += 1

    def until_body(self, module):
        """Reads a header up to the brace that opens its body, and passes over that."""
        while self.at < len(self.words) and self.word() not in "{;":
            if re.match(r"[A-Za-z_]", self.word()):
                self.path(module)
            else:
                self.at += 1
        self.at += 1

    def path(self, module):
        """Reads a word or a path."""
        line, segments = self.line(), [self.word()]
        self.at += 1
        while self.word() == "::" and re.match(r"[A-Za-z_]", self.word(1)):
            segments.append(self.word(1))
            self.at += 2
        if self.at < self.macro_end and segments[0] in ("super", "self"):
            return
        if len(segments) > 1 or segments[0] in module.imports or segments[0] in module.children:
            module.paths.append((segments, line, False))

    def constant(self, module, owner):
        """Reads a constant; those of a type or a trait, or inside a function, belong to that."""
        name, line = self.word(1), self.line()
        if owner is None:
            module.items.add(name)
        start, depth, value = self.at, 0, None
        while self.at < len(self.words):
            word = self.word()
            if word == ";" and depth == 0:
                break
            depth += (word in OPEN) - (word in CLOSE)
            if word == "=" and depth == 0 and value is None:
                value = self.at + 1
            self.at += 1
        if owner in (None, "code") and value is not None:
            module.constants.append((name, " ".join(w for w, _ in self.words[value : self.at]), line))
        self.at = start + 2

    def child(self, module, path):
        name = self.word(1)
        self.at += 2
        inline = self.word() == "{"
        self.at += 1
        if inline:
            child = Module(name, module.file, module, False)
            module.children[name] = child
            self.body(child, None)
            return
        home = module.file.parent
        if module.file.name not in ("lib.rs", "main.rs", "mod.rs"):
            home = home / module.file.stem
        for file in (home / f"{name}.rs", home / name / "mod.rs"):
            if file.exists() and not path:
                child = Module(name, file, module, True)
                module.children[name] = child
                Reader(child, self.root)

    def use(self, module):
        """Reads a `use`: what it names, and what it calls that."""
        again = self.at > 0 and self.words[self.at - 1][0] in ("pub", ")")
        line = self.line()
        self.at += 1
        self.tree(module, [], again, line)
        self.at += 1

    def tree(self, module, before, again, line):
        segments = list(before)
        while self.at < len(self.words):
            word = self.word()
            if word == "{":
                self.at += 1
                while self.word() not in ("}", ";", ""):
                    self.tree(module, segments, again, line)
                    self.at += self.word() == ","
                self.at += 1
                return
            if word in (",", "}", ";"):
                break
            if word == "as":
                self.name(module, self.word(1), segments, again, line)
                self.at += 2
                return
            if word != "::":
                segments.append(word)
            self.at += 1
        if segments[-1:] == ["self"] and before:
            segments.pop()
        if segments:
            self.name(module, segments[-1], segments, again, line)

    @staticmethod
    def name(module, name, segments, again, line):
        if name not in ("_", "*"):
            module.imports[name] = segments
        module.paths.append((segments, line, again))


def resolve(module, segments, seen=()):
    """The module that a path leads into, and the crates' path of it; None for what is not of this crate."""
    first, rest = segments[0], segments[1:]
    if first == "crate":
        here = module.root()
    elif first == "self":
        here = module
    elif first == "super":
        here = module.parent
    elif first in module.children:
        here = module.children[first]
    elif first in module.imports and (id(module), first) not in seen:
        seen = (*seen, (id(module), first))
        return resolve(module, module.imports[first] + rest, seen)
    else:
        return None
    while here is not None and rest:
        name, rest = rest[0], rest[1:]
        if name == "super":
            here = here.parent
        elif name in here.children:
            here = here.children[name]
        elif name in here.imports and name not in here.items and (id(here), name) not in seen:
            seen = (*seen, (id(here), name))
            return resolve(here, here.imports[name] + rest, seen) or here
        else:
            break
    return here


def everything(module):
    """The module and all below it."""
    yield module
    for child in module.children.values():
        yield from everything(child)


def crate_modules(crate):
    """The roots of a crate's targets in `src`."""
    name = crate.name.replace("-", "_")
    for file in (crate / "src" / "lib.rs", crate / "src" / "main.rs"):
        if file.exists():
            root = Module(name, file, None, True)
            Reader(root, root)
            yield root


def inside(module, parent):
    """Whether a module lies inside another."""
    while module is not None and module is not parent:
        module = module.parent
    return module is parent


def edges(root):
    """Which file's module refers to which, each with the first line that says so."""
    found = {}
    for module in everything(root):
        for segments, line, again in module.paths:
            target = resolve(module, segments)
            if target is None:
                continue
            a, b = module.home(), target.home()
            if a is not b and not (again and inside(b, a)) and not inside(a, b):
                found.setdefault(a, {}).setdefault(b, line)
    return found


def circles(graph):
    """The sets of modules that refer to each other in a circle (Tarjan's strongly connected components)."""
    index, low, stack, out = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, {}):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = set(stack[stack.index(node) :])
            del stack[stack.index(node) :]
            if len(part) > 1:
                out.append(part)

    for node in list(graph):
        if node not in index:
            visit(node)
    return out


def check_floors(root, crates, floors):
    """References between crates that do not lead downwards."""
    floor = {name: at for at, names in enumerate(floors) for name in names}
    by_code = {name.replace("-", "_"): name for name in floor}
    faults = []
    for crate in crates:
        manifest = tomllib.loads((crate / "Cargo.toml").read_text())
        name = manifest["package"]["name"]
        if name not in floor:
            faults.append(f"{crate.relative_to(root)}: no floor of the house lists {name}; name it in FLOORS")
            continue
        tables = [manifest, *manifest.get("target", {}).values()]
        for table in tables:
            for section in ("dependencies", "build-dependencies", "dev-dependencies"):
                for other in table.get(section, {}):
                    if other in floor and other != name and floor[other] >= floor[name]:
                        faults.append(f"{crate.relative_to(root)}/Cargo.toml: {name} asks for {other}, not below it")
        for file in sorted((crate / "src").rglob("*.rs")):
            words = tokens(file.read_text())
            for (word, line), (after, _) in zip(words, words[1:]):
                other = by_code.get(word)
                if after == "::" and other and other != name and floor[other] >= floor[name]:
                    faults.append(f"{file.relative_to(root)}:{line}: {name} names {other}, not below it")
    return faults


def check_kernels(root, modules, kernels, shared):
    """References from the kernels to what they do not share with their crate."""
    faults = []
    place = (root / "crates" / kernels).resolve()
    for module in modules:
        if place not in module.file.resolve().parents:
            continue
        for segments, line, _ in module.paths:
            target = resolve(module, segments)
            if target is None or place in target.file.resolve().parents or segments[-1] in shared:
                continue
            if segments[0] in module.imports:
                continue  # said where it was imported
            said = "::".join(segments)
            faults.append(f"{module.file.relative_to(root)}:{line}: a kernel names {said} of {target.label()}")
    return faults


def check_unsafe(root, kernels, requests):
    """Where `unsafe` is that is not a kernel's."""
    files = sorted(file for folder in ("crates", "tools", "fuzz") for file in (root / folder).rglob("*.rs"))
    for file in files:
        name = str(file.relative_to(root))
        if name.startswith(f"crates/{kernels}") or name in requests or "/target/" in name:
            continue
        for word, line in tokens(file.read_text()):
            if word == "unsafe":
                yield f"{name}:{line}: unsafe; every one is in crates/{kernels}"


def check_circles(root, roots):
    """Circles between the modules of a crate."""
    faults = []
    for crate in roots:
        graph = edges(crate)
        for part in circles(graph):
            lines = [
                f"    {a.file.relative_to(root)}:{line} names {b.label()}"
                for a in sorted(part, key=Module.label)
                for b, line in graph.get(a, {}).items()
                if b in part
            ]
            names = ", ".join(sorted(m.label() for m in part))
            faults.append("\n".join([f"{crate.name}: a circle between {names}", *lines]))
    return faults


def check_constants(root, modules, own):
    """Constants of one name with different values."""
    places, faults = {}, []
    excepted = {name for names in own.values() for name in names.split()}
    modules = list(modules)
    for module in modules:
        for name, value, line in module.constants:
            if value.split()[-1] != name:
                places.setdefault(name, {}).setdefault(value, f"{module.file.relative_to(root)}:{line}")
    for name, values in sorted(places.items()):
        # One constant may be defined as another.
        said = {next(iter(places[last])) if len(places.get(last := v.split()[-1], ())) == 1 else v for v in values}
        if len(said) > 1 and name not in excepted:
            said = "; ".join(f"{value} ({place})" for value, place in values.items())
            faults.append(f"{name} has {len(values)} values: {said}")
    return faults


def check_lines(root, crates, kernels, most):
    """Files that are too long."""
    faults = []
    place = root / "crates" / kernels
    for crate in crates:
        for file in sorted((crate / "src").rglob("*.rs")):
            count = len(file.read_text().splitlines())
            if count > most and place not in file.parents:
                faults.append(f"{file.relative_to(root)}: {count} lines; split what has more than {most}")
    return faults


def check_options(root, crates, commands):
    """Options in the strings of crates that know none; comments and tests may name them."""
    for crate in crates:
        if crate.name in commands:
            continue
        for file in sorted(crate.glob("src/**/*.rs")):
            said = file.read_text().split("#[cfg(test)]")[0].splitlines()
            for number, line in enumerate(said, 1):
                if not line.lstrip().startswith("//") and re.search(r"[\"` ]--[a-z]", line.split(" //")[0]):
                    yield f"{file.relative_to(root)}:{number}: names an option of the command"


def check_counts(root, crates, counted, uncounted):
    """Numbers in front of what they count, which would be wrong for 1."""
    gap = r"(?: |\s*\\\n\s*)"
    nouns = "|".join(counted.split())
    number = re.compile(r"\{([^{} ]*)\}" + gap + rf"(?:[a-zA-Z]+{gap})?((?:{nouns})\b[^\n]*)")
    for crate in crates:
        for file in sorted(crate.glob("src/**/*.rs")):
            if "tests" in file.stem or "cheats" in file.stem or {"tests", "simd"} & set(file.parts):
                continue
            source = file.read_text().split("#[cfg(test)]\nmod tests")[0]
            for found in number.finditer(source):
                value, rest = found.groups()
                line = source[source.rfind("\n", 0, found.start()) + 1 : source.find("\n", found.start())]
                is_fixed = value.isupper() or "_" in value and value.replace("_", "").isupper() or ":" in value
                is_comment = "//" in line[: line.find("{")] or "[secret]" in line
                if not is_fixed and not is_comment and not any(rest.startswith(end) for end in uncounted):
                    number_of = source.count("\n", 0, found.start()) + 1
                    yield f"{file.relative_to(root)}:{number_of}: `{rest.split()[0]}` for 1, too; see `counted`"


def check_names(root, crates, words):
    """Comparisons and matches with a protocol's name, where its entry could be asked."""
    catalogue = [file for crate in crates for file in sorted(crate.glob("src/catalogue/*.rs"))]
    names = {name for file in catalogue for name in re.findall(r'\bname: "([\w-]+)"', file.read_text())} - words
    if not names:
        return
    name = '"(?:' + "|".join(sorted(names)) + ')"'
    decision = re.compile(rf'[=!]= {name}|(?:starts_with|ends_with|contains)\({name}|^\(?[^=]*{name}[^=]*=> |{name} [=!]=')
    for crate in crates:
        for file in sorted(crate.glob("src/**/*.rs")):
            if file in catalogue or "tests" in file.parts or file.stem == "tests":
                continue
            for number, line in enumerate(file.read_text().split("#[cfg(test)]")[0].splitlines(), 1):
                if not line.lstrip().startswith("//") and decision.search(line.strip()):
                    yield f"{file.relative_to(root)}:{number}: decides by a protocol's name; ask its entry"


def check(root, floors=None, kernels=KERNELS, shared=None, own=None, most=MOST_LINES):
    """Every check's faults, by the check's name."""
    crates = sorted(path.parent for path in (root / "crates").glob("*/Cargo.toml"))
    roots = [module for crate in crates for module in crate_modules(crate)]
    modules = [module for crate in roots for module in everything(crate)]
    return {
        "crates refer downwards": check_floors(root, crates, FLOORS if floors is None else floors),
        "kernels refer to plain types": check_kernels(root, modules, kernels, SHARED if shared is None else shared),
        "unsafe is the kernels' alone": list(check_unsafe(root, kernels, REQUESTS)),
        "modules refer in no circle": check_circles(root, roots),
        "constants have one value": check_constants(root, modules, OWN if own is None else own),
        "files have a length to read": check_lines(root, crates, kernels, most),
        "libraries name no options": list(check_options(root, crates, COMMANDS)),
        "numbers agree with their nouns": list(
            check_counts(root, crates, COUNTED, [end for ends in UNCOUNTED.values() for end in ends])
        ),
        "protocols' entries decide, not their names": list(check_names(root, crates, ALSO_WORDS)),
    }


def without_open(found, open_faults):
    """The faults that are not known yet, and what is said to be open and is not."""
    every = [fault for faults in found.values() for fault in faults]
    mended = [begin for begin in open_faults if not any(fault.startswith(begin) for fault in every)]
    new = {
        name: [fault for fault in faults if not any(fault.startswith(begin) for begin in open_faults)]
        for name, faults in found.items()
    }
    return new | {"what is listed as open is": [f"{begin} is mended: take it off the list" for begin in mended]}


def main():
    passed = failed = 0
    for name, faults in without_open(check(ROOT), OPEN_FAULTS).items():
        print(f"{name}: {'ok' if not faults else f'{len(faults)} faults'}")
        for fault in faults:
            print(f"  {fault}")
        passed += not faults
        failed += bool(faults)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
