"""The runs of the study of the authors' rows and loop, with their labels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

from fedlib.algorithms.feddr import FedDR
from papers.fedfw.authors.loop import NORMS, AuthorsFedDR, AuthorsFW
from papers.fedfw.authors.rows import NETS, authors_problem, our_problem
from papers.fedfw.cells import Printed, as_coded, traced
from papers.kit.health import learning
from papers.kit.quantities import Defaults, Label, by_name
from papers.kit.store import Spec
from papers.kit.study import Params

RADIUS = 10.0
KEEP = ("loss", "accuracy")
TEXT_EVERY = 10
USERS = 100  # of Table 3
LAM = 1e-3  # lambda_0 of FedFW-sto, and of every step
#: Classes of the generator by column; both have one labelling rule for all users.
SPLITS = {"iid": 10, "classes": 3}
#: Guessing is to answer the most frequent label: of ten users, and of a hundred.
GUESSING = {
    "many_classes_*": learning(0.384),
    "many_iid_*": learning(0.421),
    "*_classes_*": learning(0.660),
    "*": learning(0.340),
}

#: The labels of runs: `users` is `many` in Table 3, `step` says which step from the protocol of the
#: text it is, `lam` is lambda_0.
DEFAULTS: Defaults = {
    "users": None,
    "step": None,
    "net": None,
    "split": None,
    "norm": None,
    "method": None,
    "lam": None,
    "lr": None,
    "eta": None,
}
Labels = dict[str, Label]


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([*cells(p), *between(p)], DEFAULTS)


def cells(p: Params, *, published: bool = False) -> Iterator[Spec]:
    """The cells of Tables 1 and 2 on generated data, and of Table 3.

    With `published` minibatches have a fixed order, and all clients of FedDR start at one model.
    """
    run = partial(labelled, p)
    for norm, net, split in product(NORMS, NETS, p["splits"]):
        problem = problem_of(net, split)
        cell: Labels = {"net": net, "split": split, "norm": norm}
        for lam in lambdas(net, split, norm):
            method = AuthorsFW(lam, norm, ordered=published)
            yield run(method, problem, p["rounds"], {**cell, "method": "fw", "lam": lam})
        feddr = AuthorsFedDR(norm, common=published, ordered=published)
        yield run(feddr, problem, p["feddr_rounds"], {**cell, "method": "feddr"})
    for split in p["splits"] if p["many_rounds"] else ():
        problem = problem_of("mclr", split, users=USERS)
        column: Labels = {"users": "many", "split": split}
        sto = AuthorsFW(LAM, averaged=True, ordered=published)
        yield run(sto, problem, p["many_rounds"], {**column, "method": "sto"})
        feddr = AuthorsFedDR(common=published, ordered=published)
        yield run(feddr, problem, p["many_feddr_rounds"], {**column, "method": "feddr"})


def labelled(
    p: Params,
    method: Any,
    problem: Any,
    rounds: int,
    labels: Labels,
    evaluate_every: int = 1,
) -> Spec:
    """A run with these labels."""
    return Spec(
        method,
        problem,
        rounds,
        p["seeds"],
        evaluate_every,
        KEEP,
        labels=labels,
    )


def problem_of(net: str, split: str, **options: Any) -> Any:
    """What makes the problem of a column from the authors' rows."""
    return partial(authors_problem, net=net, classes=SPLITS[split], **options)


def between(p: Params) -> Iterator[Spec]:
    """From the text's protocol on our rows to the authors', logistic regression, l2, IID."""
    theirs = problem_of("mclr", "iid")
    problems = {"ours": partial(our_problem, most=p["most"]), "rows": theirs}
    run = partial(labelled, p, rounds=p["text_rounds"], evaluate_every=TEXT_EVERY)
    for step, problem in problems.items():
        for lam in map(float, p["lambdas"]):
            plain = AuthorsFW(lam, reset=False, epoch=False, tensors=False)
            yield run(plain, problem, labels={"step": step, "method": "fw", "lam": lam})
        within = partial(problem.func, **problem.keywords, ball=RADIUS)
        for lr, eta in product(map(float, p["rates"]), map(float, p["etas"])):
            point: Labels = {"step": step, "method": "feddr", "lr": lr, "eta": eta}
            yield run(FedDR(lr, 1, eta=eta), within, labels=point)
    reset = AuthorsFW(LAM, epoch=False, tensors=False)
    yield run(reset, theirs, labels={"step": "reset", "method": "fw"})
    yield run(AuthorsFW(LAM, tensors=False), theirs, labels={"step": "epoch", "method": "fw"})
    for lam in map(float, p["chosen"]):
        if lam not in lambdas("mclr", "iid", "l2"):
            cell: Labels = {
                "net": "mclr",
                "split": "iid",
                "norm": "l2",
                "method": "fw",
                "lam": lam,
            }
            yield labelled(
                p,
                AuthorsFW(lam),
                theirs,
                p["rounds"],
                cell,
            )


def lambdas(net: str, split: str, norm: str) -> tuple[float, ...]:
    """lambda_0 of FedFW's and of FedFW+'s files, which are runs of one code; each once."""
    column = f"{net}_synthetic_{split}"
    of_fedfw, _ = traced(column, norm, "fedfw")
    of_plus, _ = traced(column, norm, "plus")
    return (of_fedfw,) if of_plus == of_fedfw else (of_fedfw, of_plus)


def run_of(printed: Printed) -> Labels:
    """The labels of the run of a printed value; empty where there is none."""
    net, source, split = as_coded(printed.column).split("_")
    if source != "synthetic":
        return {}
    if not printed.norm:
        return {"users": "many", "split": split, "method": printed.method}
    cell: Labels = {"net": net, "split": split, "norm": printed.norm}
    if printed.method == "feddr":
        return {**cell, "method": "feddr"}
    lam, _ = traced(printed.column, printed.norm, printed.method)
    return {**cell, "method": "fw", "lam": lam}


def pairs() -> Iterator[tuple[Labels, Labels]]:
    """The runs that are compared: FedFW's with the lambda_0 of its file, and FedDR's."""
    for net, split, norm in product(NETS, SPLITS, NORMS):
        cell: Labels = {"net": net, "split": split, "norm": norm}
        lam, *_ = lambdas(net, split, norm)
        yield {**cell, "method": "fw", "lam": lam}, {**cell, "method": "feddr"}
    for split in SPLITS:
        column: Labels = {"users": "many", "split": split}
        yield {**column, "method": "sto"}, {**column, "method": "feddr"}
