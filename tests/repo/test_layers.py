"""Who imports whom: one rule, read off the folders.

checks, provenance, shapes <- compress, solvers, steps, models, data <- core <- sets, weights,
vertical, metrics <- work <- algorithms | problems <- engine <- run <- flower <- testing;
fedlib <- papers.kit <- papers.<paper>; no paper imports another.
"""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(p for package in ("fedlib", "papers") for p in (ROOT / package).rglob("*.py"))

#: The folders of papers: whatever folder is added beside the kit is one.
PAPERS = (f"papers.{p.parent.name}" for p in (ROOT / "papers").glob("*/__init__.py"))
#: From the bottom to the top, folders and files at a root: each imports from itself and from the
#: rows before; those of one row do not know each other.
ROWS = (
    ("fedlib.checks", "fedlib.provenance", "fedlib.shapes"),
    ("fedlib.compress", "fedlib.solvers", "fedlib.steps", "fedlib.models", "fedlib.data"),
    ("fedlib.core",),
    ("fedlib.sets", "fedlib.weights", "fedlib.vertical", "fedlib.metrics"),
    ("fedlib.work",),
    ("fedlib.algorithms", "fedlib.problems", "fedlib.protocols"),
    ("fedlib.engine",),
    ("fedlib.run",),
    ("fedlib.flower",),
    ("fedlib.testing",),
    ("fedlib",),
    ("papers.kit", "papers.adult"),
    tuple(sorted({*PAPERS} - {"papers.kit"})),
    ("papers", "papers.__main__", "papers.overview", "papers.compare"),
)  # fmt: skip
HEIGHT = {room: height for height, row in enumerate(ROWS) for room in row}
TOP = set(ROWS[-1])  # what looks across the papers is one room
RANDOM = {"rand", "randn", "randint", "randperm", "bernoulli", "multinomial", "normal"}


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def module_of(path):
    names = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def room(module):
    """The folder or file right below a package; `fedlib` for a public name of the library."""
    return ".".join(module.split(".")[:2])


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


MODULES = {module_of(path) for path in FILES}


def is_for_types(node):
    """Whether a statement is only for a type checker."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def nodes_at_run_time(tree):
    """The nodes of a syntax tree without what only a type checker reads."""
    for child in ast.iter_child_nodes(tree):
        if not is_for_types(child):
            yield child
            yield from nodes_at_run_time(child)


def imports(tree):
    """Every module that a syntax tree imports, at the top or in a function."""
    return modules_of(ast.walk(tree))


def modules_of(nodes):
    """The modules that some nodes import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in line {node.lineno}"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else str(node.module)


def test_every_folder_has_its_place_in_the_rule():
    assert {room(module) for module in MODULES} == set(HEIGHT)


def test_a_file_imports_from_the_rows_below_it_alone():
    for path in FILES:
        folder = room(module_of(path))
        for module in imports(parsed(path)):
            used = room(module)
            if used in HEIGHT and used != folder and not {used, folder} <= TOP:
                assert HEIGHT[used] < HEIGHT[folder], f"{name_of(path)} imports {module}"


def test_an_algorithm_imports_no_other_algorithm():
    folder = ROOT / "fedlib" / "algorithms"
    paths = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    algorithms = {module_of(path) for path in paths if not path.name.startswith("_")}
    assert algorithms
    for path in paths:
        others = algorithms - {module_of(path)}
        assert not others & {*imports(parsed(path))}, name_of(path)


OPTIONAL = {"matplotlib": ["papers/kit/plot.py"], "flwr": ["fedlib/flower/app.py"]}


def test_what_is_optional_is_imported_in_one_place():
    importers = {package: [] for package in OPTIONAL}
    for path in FILES:
        modules = modules_of(nodes_at_run_time(parsed(path)))
        packages = {module.split(".")[0] for module in modules}
        for package in packages & importers.keys():
            importers[package].append(name_of(path))
    assert importers == OPTIONAL


def test_random_tensors_come_from_a_generator():
    for path in FILES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and is_random(node.func):
                keywords = {keyword.arg for keyword in node.keywords}
                assert "generator" in keywords, f"{name_of(path)}:{node.lineno}"


def is_random(function):
    """Whether a function that is called is one of torch that draws."""
    module, _, name = ast.unparse(function).rpartition(".")
    return module == "torch" and name in RANDOM
