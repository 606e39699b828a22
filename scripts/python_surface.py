"""What the Python package offers to its users, read from its sources: `public_surface.py` compares it with a file.

One line for each name in `__all__` of the package and of its public modules, and for each public method, property and
attribute of a class, with what it inherits from classes of the package.
"""

import ast
from pathlib import Path

PACKAGE = "tacit"
# The public modules besides the package itself.
MODULES = ("errors", "nisc", "spark")
# What every class may have, and says nothing to a user.
COMMON = {"__init__", "__repr__", "__hash__", "__eq__", "__slots__", "__post_init__", "__module__"}


class Source:
    """A module's statements by the name that each defines."""

    def __init__(self, path):
        self.path, self.defined, self.imported = path, {}, {}
        for statement in ast.parse(path.read_text()).body:
            if isinstance(statement, ast.ImportFrom) and statement.level == 1:
                for alias in statement.names:
                    self.imported[alias.asname or alias.name] = (statement.module, alias.name)
            for name in names_of(statement):
                self.defined.setdefault(name, []).append(statement)


def names_of(statement):
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return [statement.target.id]
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return []


class Package:
    def __init__(self, folder):
        self.folder, self.sources = folder, {}

    def source(self, module):
        if module not in self.sources:
            self.sources[module] = Source(self.folder / f"{module}.py")
        return self.sources[module]

    def find(self, module, name):
        """(module, statements) that define a name, wherever the module has it from; nothing for what is native."""
        if not (self.folder / f"{module}.py").is_file():
            return module, []
        source = self.source(module)
        if name in source.imported:
            origin, original = source.imported[name]
            return (name, []) if origin is None else self.find(origin, original)
        found = source.defined.get(name, [])
        # `bool = _number.bool_` is what it names.
        if len(found) == 1 and isinstance(value := getattr(found[0], "value", None), ast.Attribute):
            if isinstance(value.value, ast.Name) and source.imported.get(value.value.id, ("",))[0] is None:
                return self.find(value.value.id, value.attr)
        return module, found

    def public(self, module):
        """The names of a module's `__all__`, and those that it defines beside it, as `tacit.sum`."""
        defined = self.source(module).defined
        listed = [ast.literal_eval(statement.value) for statement in defined.get("__all__", [])]
        return {name for names in listed for name in names} | {name for name in defined if not name.startswith("_")}

    def members(self, module, definition):
        """A class's public members by name, those of its bases in the package first."""
        found = {}
        for base in definition.bases:
            home, statements = self.find(module, base.id) if isinstance(base, ast.Name) else (module, [])
            for statement in statements:
                if isinstance(statement, ast.ClassDef):
                    found |= self.members(home, statement)
        own = {}
        for statement in definition.body:
            for name in names_of(statement):
                if not name.startswith("_") or (name.startswith("__") and name not in COMMON) or name == "__init__":
                    own.setdefault(name, []).append(statement)
        return found | own


def arguments(function):
    result = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"({ast.unparse(function.args)}){result}"


def line(path, statement):
    """A statement that defines `path`, as a line without a body."""
    if isinstance(statement, ast.AnnAssign):
        value = f" = {ast.unparse(statement.value)}" if statement.value else ""
        return f"{path}: {ast.unparse(statement.annotation)}{value}"
    if isinstance(statement, ast.Assign):
        return f"{path} = {ast.unparse(statement.value)}"
    marks = " ".join(f"@{ast.unparse(mark)}" for mark in statement.decorator_list)
    marks = f"{marks} " if marks else ""
    if isinstance(statement, ast.ClassDef):
        bases = ", ".join([*map(ast.unparse, statement.bases), *map(ast.unparse, statement.keywords)])
        return f"{path}: {marks}class({bases})"
    return f"{path}: {marks}def{arguments(statement)}"


def surface(folder):
    """The sorted lines of the package whose sources are in `folder`."""
    package, lines = Package(Path(folder)), set()
    for module in ("__init__", *MODULES):
        if not (package.folder / f"{module}.py").is_file():
            continue
        prefix = PACKAGE if module == "__init__" else f"{PACKAGE}.{module}"
        for name in package.public(module):
            home, statements = package.find(module, name)
            path = f"{prefix}.{name}"
            if not statements:
                lines.add(path)
            for statement in statements:
                lines.add(line(path, statement))
                if isinstance(statement, ast.ClassDef):
                    for member, made in package.members(home, statement).items():
                        lines.update(line(f"{path}.{member}", one) for one in made)
    return sorted(lines)
