"""Bad fields and calls are refused by name, good ones taken; every record declares its fields."""

import ast
from functools import cache
from pathlib import Path

import bad_arguments
from good_calls import calls
from good_records import records

ROOT = Path(__file__).resolve().parents[2]
#: Records that no user fills in: the loop's and the reports' own, made by functions of theirs from
#: what was checked before.
INTERNAL = {
    "fedlib.engine.checkpoint:Progress",
    *(
        "papers.kit.tolerance:Tolerance",
        "papers.kit.ledger:RunPrefix",
        "papers.kit.ledger:CheckedRun",
    ),
    "papers.kit.reproduce:Comparison",
    "papers.kit.run_groups:Group",
    *("fedlib.core.client:Client", "fedlib.core.trace:Trace"),
    *("papers.fedcmoo.data.molecules:Molecules", "fedlib.data.sources:Source"),
    *("papers.arena.methods:Entry", "papers.compare:Comparison"),
    *("papers.fedcmoo.checks:Waves", "papers.fedcmoo.theory:Bound", "papers.fedcmoo.theory:Rates"),
    *("papers.fedcmoo.data.pairs:Pairs", "papers.fedcmoo.data.pairs:Scale"),
    *("papers.fedfw.checks:Bowls", "papers.fedfw.rates.oracles:Towards"),
    *("papers.fedsgm.bounds.methods:Method", "papers.fedsgm.bounds.numbers:Reached"),
    *("papers.fedsgm.bounds.runs:Plan", "papers.fedsgm.theory:Rate"),
    *("papers.kit.conditions:Condition", "papers.kit.conditions:Term"),
    *("papers.kit.health:Health", "papers.kit.numbers:Number"),
    *("papers.kit.rules:Outcome", "papers.kit.rules:Part"),
    "papers.kit.page:Page",
    *("papers.kit.study:Evaluated", "papers.ssca.checks:Program", "papers.ssca.checks:Ripples"),
    *("fedlib.vertical:Party", "fedlib.models:ModuleFunction", "fedlib.problems.own:OwnFunctions"),
}
#: Declared, and tried elsewhere: problems by the corpus of problems, what a study is made of by the
#: tests that every study passes.
ELSEWHERE = {
    *("fedlib.data.loaders:Table", "fedlib.flower.job:Job"),
    *("papers.kit.claims:Claim", "papers.kit.claims:PaperValue", "papers.kit.claims:Reading"),
    *("papers.kit.rules:Control", "papers.kit.rules:Rule", "papers.kit.rules:Size"),
    "papers.kit.study:Study",
    *("fedlib.vertical:VerticalProblem", "fedlib.problems.own:GroupGap"),
}


def test_bad_ones_are_refused_by_name_and_good_ones_taken():
    found = list(bad_arguments.outcomes())
    assert bad_arguments.short(found) == []
    assert len(found) > 12_000


def test_functions_take_their_good_arguments():
    for call in calls():
        call.with_changes()


def test_every_record_declares_its_fields():
    """A method that is added cannot forget it."""
    assert {name for name, declares in dataclasses().items() if not declares} == INTERNAL


def test_every_record_is_in_the_corpus():
    made = {type(record) for record in records()}
    tried = {f"{base.__module__}:{base.__name__}" for kind in made for base in kind.__mro__}
    assert {name for name, declares in dataclasses().items() if declares} - tried == ELSEWHERE


@cache
def dataclasses() -> dict[str, bool]:
    """Every dataclass with fields of the library and the studies, and whether it checks them.

    Private ones are made from arguments that have been checked.
    """
    classes: dict[str, ast.ClassDef] = {}
    for path in sorted(p for folder in ("fedlib", "papers") for p in (ROOT / folder).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[f"{module}:{node.name}"] = node
    declared = {name for name, node in classes.items() if checks_fields(node)}
    declared.add("fedlib.checks:Checked")
    for _ in range(6):  # a base's base may do it
        own = {name.partition(":")[2] for name in declared}
        for name, node in classes.items():
            if own.intersection(ast.unparse(base).split(".")[-1] for base in node.bases):
                declared.add(name)
    return {
        name: name in declared
        for name, node in classes.items()
        if has_fields(node) and "dataclass" in str([*map(ast.unparse, node.decorator_list)])
    }


def checks_fields(node: ast.ClassDef) -> bool:
    made = [part for part in node.body if getattr(part, "name", "") == "__post_init__"]
    return any("checks.fields(self)" in ast.unparse(part) for part in made)


def has_fields(node: ast.ClassDef) -> bool:
    return any(isinstance(part, ast.AnnAssign) for part in node.body)
