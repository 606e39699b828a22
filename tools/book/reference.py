"""The reference of the Python package as a page of the book, out of its sources: signatures and docstrings."""

import ast
import re
import textwrap
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "tacit"
SOURCES = ["_jobs.py", "_link.py", "_query.py", "_number.py", "errors.py"]
# Modules of the package whose functions are called by the module.
MODULES = ["nisc"]
# What `tacit` calls otherwise than the source that defines it.
CALLED = {"bool_": "bool", "max_": "max", "min_": "min", "sum_": "sum"}
GROUPS = {
    "Jobs": ["intersect", "link", "query", "request", "ask", "evaluate", "ot", "vole", "triples", "check", "Session"],
    "Keys and functions by name": ["keygen", "fingerprint", "functions"],
    "Messages instead of a connection": [
        "nisc.keygen", "nisc.answer", "nisc.ask", "nisc.reply", "nisc.open", "nisc.eval_ask", "nisc.eval_reply",
        "nisc.eval_open",
    ],
    "Functions in Python": [
        "function", "Function", "Number", "Type", "Array", "uint", "int_", "where", "min", "max", "sum", "sort",
    ],
    "What jobs give and take": [
        "Intersection", "Identifier", "Linked", "Answer", "Granted", "Answered", "Offer", "Evaluation", "Transfers", "Check", "Reason", "KeyPair", "Progress",
        "File", "Settings",
    ],
    "Errors": [
        "Error", "UsageError", "InputError", "PeerError", "Cheated", "Mismatch", "Declined", "OutOfRange", "SecretBranch",
    ],
}  # fmt: skip
HEAD = """# Python reference

Every public name of the package `tacit`, out of its sources; [From Python](python.md) explains what to do with
them. The types `u8` to `u64`, `i8` to `i64` and `bool` are instances of [`Type`](#type).
"""


def definitions():
    """Functions and classes of the package by their public name, with the lines of their source."""
    found = {}
    for name in SOURCES:
        text = (PACKAGE / name).read_text()
        for node in ast.parse(text).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.setdefault(CALLED.get(node.name, node.name), (node, text.splitlines()))
    for module in MODULES:
        text = (PACKAGE / f"{module}.py").read_text()
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef):
                found[f"{module}.{node.name}"] = (node, text.splitlines())
    return found


def exported():
    """The names of `__all__`, of the package and of its modules."""
    modules = {name for module in MODULES for name in all_of(f"{module}.py", f"{module}.")}
    return all_of("__init__.py", "") | modules


def all_of(source, prefix):
    for node in ast.parse((PACKAGE / source).read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return {prefix + name for name in ast.literal_eval(node.value)}
    raise ValueError(f"{source} has no __all__")


def signature(node, name):
    arguments = ast.unparse(node.args)
    arguments = re.sub(r"^self(, |$)", "", arguments)
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{name}({arguments}){result}"
    if len(line) <= 90:
        return line
    parts = [ast.unparse(part) for part in split(node.args)]
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts if part != "self") + f"){result}"


def split(arguments):
    """Each argument by itself, as one that is written out."""
    positional = arguments.posonlyargs + arguments.args
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    for one, default in zip(positional, defaults):
        yield ast.arguments([], [one], None, [], [], None, [default] if default else [])
    if arguments.vararg:
        yield ast.arguments([], [], arguments.vararg, [], [], None, [])
    elif arguments.kwonlyargs:
        yield ast.Name("*")
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        # Without the star, which stands once.
        yield ast.arguments([], [one], None, [], [], None, [default] if default else [])
    if arguments.kwarg:
        yield ast.arguments([], [], None, [], [], arguments.kwarg, [])


def prose(text, names):
    """A docstring's marks as Markdown's; names of the package lead to their entries."""

    def linked(found):
        name = found[1].removeprefix("tacit.").lstrip("~")
        return f"[`{name}`](#{name.lower().replace('.', '')})" if name in names else f"`{name}`"

    text = re.sub(r":(?:class|func|meth|attr):`([^`]+)`", linked, text)
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def docstring(node, names):
    text = ast.get_docstring(node) or ""
    text, _, parameters = text.partition("Parameters\n----------\n")
    out = [blocks(text, names)]
    if parameters:
        out.append("| parameter | |\n| --- | --- |")
        rows, rest = [], []
        entries, _, tail = parameters.partition("\n\n")
        for line in entries.splitlines():
            if line and not line[0].isspace():
                rows.append([line.rstrip(":"), []])
            else:
                rows[-1][1].append(line.strip())
        for name, lines in rows:
            shown = ", ".join(f"`{one.strip()}`" for one in name.split(","))
            out[-1] += f"\n| {shown} | {prose(' '.join(lines), names).replace('|', chr(92) + '|')} |"
        rest = blocks(tail, names)
        out.append(rest)
    return "\n\n".join(part for part in out if part.strip())


def blocks(text, names):
    """Paragraphs, examples fenced."""
    out = []
    for part in re.split(r"\n\n+", text.strip()):
        if part.startswith(">>>") or part.startswith("    "):
            out.append(f"```python\n{textwrap.dedent(part)}\n```")
        elif part:
            out.append(prose(part, names))
    return "\n\n".join(out)


def fields(node, lines, names):
    """A class's public fields, with the comments `#:` in front of them."""
    rows = []
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and not ast.unparse(item.target).startswith("_"):
            at, said = item.lineno - 2, []
            while lines[at].strip().startswith("#:"):
                said.insert(0, lines[at].strip()[2:].strip())
                at -= 1
            kind = ast.unparse(item.annotation).replace("|", "\\|")
            rows.append(f"| `{ast.unparse(item.target)}` | `{kind}` | {prose(' '.join(said), names)} |")
    return "| field | type | |\n| --- | --- | --- |\n" + "\n".join(rows) if rows else ""


def entry(name, node, lines, names):
    if isinstance(node, ast.FunctionDef):
        return f"### {name}\n\n```python\n{signature(node, 'tacit.' + name)}\n```\n\n{docstring(node, names)}\n"
    parts = [f"### {name}", docstring(node, names), fields(node, lines, names)]
    bases = [ast.unparse(base) for base in node.bases if ast.unparse(base) in names]
    if bases:
        parts.insert(1, f"Also {' and '.join(f'[`{base}`](#{base.lower()})' for base in bases)}.")
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and not item.name.startswith("_"):
            brief = docstring(item, names)
            if brief:
                parts.append(f"```python\n{signature(item, f'{name}.{item.name}')}\n```\n\n{brief}")
        elif isinstance(item, ast.FunctionDef) and item.name == "__init__" and len(item.args.kwonlyargs) > 3:
            parts.insert(1, f"```python\n{signature(item, 'tacit.' + name)}\n```")
    return "\n\n".join(part for part in parts if part.strip()) + "\n"


def page():
    """The page as Markdown. Errors: a public name in no group, or in one and not public."""
    found = definitions()
    listed = [name for group in GROUPS.values() for name in group]
    types = {f"{letter}{width}" for letter in "iu" for width in (8, 16, 32, 64)}
    missing = exported() - set(listed) - types
    unknown = [name for name in listed if name not in found]
    if missing or unknown:
        raise ValueError(f"tools/book/reference.py: to be listed: {sorted(missing)}; not there: {unknown}")
    out = [HEAD]
    for title, names in GROUPS.items():
        out.append(f"## {title}\n")
        out += [entry(name, *found[name], set(listed)) for name in names]
    return "\n".join(out)


if __name__ == "__main__":
    print(page())
