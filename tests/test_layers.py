"""Who imports whom: the layers of the library, read from the syntax trees."""

import ast
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[1] / "fedlib"
FILES = sorted(LIBRARY.rglob("*.py"))
BASE = {"types", "checks"}
INGREDIENTS = {"client", "compress", "policies", "sampling", "sets", "switching", "trpo"}
INGREDIENTS |= {"gram", "lowrank", "preference", "sketches", "weights"}
INGREDIENTS |= {"blocks", "nuclear", "schedules", "sparse_sets", "vertices"}
INGREDIENTS |= {"composite", "schedules", "surrogate", "vertical"}
DATA = {
    "adult",
    "attributes",
    "celeba",
    "data",
    "gaussian_labels",
    "models",
    "molecules",
    "networks",
    "pairs",
    "picture_networks",
    "split",
    "split_labels",
}
TOP = {"studies", "claims", "store", "plot", "plot_data", "__main__", "fingerprint", "numbers"}
RANDOM = {"rand", "randn", "randint", "randperm", "bernoulli", "multinomial", "normal"}


def module_of(path):
    return ".".join(("fedlib", *path.relative_to(LIBRARY).with_suffix("").parts))


class Needed(ast.NodeTransformer):
    """Leaves out what only a type checker imports."""

    def visit_If(self, node):
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)


def imports(path):
    """Absolute names of everything that a file imports."""
    for node in ast.walk(Needed().visit(ast.parse(path.read_text()))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer(module):
    """The file or folder right below fedlib."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "fedlib" else None


def used(path):
    """The layers that a file imports from, its own left out."""
    own = layer(module_of(path))
    return {layer(name) for name in imports(path) if layer(name)} - {own}


def in_layer(*names):
    return [p for p in FILES if layer(module_of(p)) in names]


def name_of(path):
    return path.relative_to(LIBRARY).as_posix()


@pytest.mark.parametrize("path", in_layer(*BASE), ids=name_of)
def test_types_and_checks_stand_at_the_bottom(path):
    assert used(path) <= BASE | {"sets"}


@pytest.mark.parametrize("path", in_layer(*INGREDIENTS, "federation"), ids=name_of)
def test_ingredients_know_neither_algorithms_nor_problems(path):
    assert not used(path) & ({"algorithms", "problems", "run"} | DATA | TOP)


@pytest.mark.parametrize("path", in_layer("algorithms"), ids=name_of)
def test_algorithms_know_no_problem_and_no_loop(path):
    assert not used(path) & ({"problems", "run"} | DATA | TOP)


@pytest.mark.parametrize("path", in_layer("problems", "envs", *DATA), ids=name_of)
def test_problems_know_no_algorithm(path):
    assert not used(path) & ({"algorithms", "run"} | TOP)


@pytest.mark.parametrize("path", in_layer("run"), ids=name_of)
def test_run_knows_protocols_only(path):
    assert not used(path) & ({"algorithms", "problems"} | DATA | TOP)


@pytest.mark.parametrize("path", in_layer("theory", "metrics", "ssca_leaks"), ids=name_of)
def test_theory_and_metrics_are_pure(path):
    assert not used(path) & ({"algorithms", "problems", "run", "federation"} | DATA | TOP)


#: The same methods with another local optimizer: they override the clients' half alone.
EXTENDS = {"fedlib.algorithms.local_adam"}


def test_an_algorithm_imports_no_other_algorithm():
    algorithms = [p for p in in_layer("algorithms") if p.name != "__init__.py"]
    assert algorithms
    modules = {module_of(p) for p in algorithms if not p.name.startswith("_")}
    for path in algorithms:
        others = modules - {module_of(path)}
        if module_of(path) in EXTENDS:
            continue
        assert not others & set(imports(path)), name_of(path)


def test_only_plots_import_matplotlib():
    found = {name_of(p) for p in FILES if any(n.startswith("matplotlib") for n in imports(p))}
    assert found == {"plot.py", "plot_data.py"}


def test_gymnasium_stays_optional():
    needs = {name_of(p) for p in FILES if any(n.startswith("gymnasium") for n in imports(p))}
    assert needs == {"envs.py"}
    assert not any("envs" in used(p) for p in FILES)


def test_random_tensors_come_from_a_generator():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "torch"
                and node.func.attr in RANDOM
            ):
                keywords = {keyword.arg for keyword in node.keywords}
                assert "generator" in keywords, f"{name_of(path)}:{node.lineno}"
