"""The command line of the studies: runs, verdicts, comparisons."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

import papers
from fedlib import __version__, checks
from fedlib.core.files import atomic_write
from fedlib.data import DataError
from fedlib.provenance import ROOT
from papers.kit.packages import to_install

try:
    from papers.kit import parts, run_groups
    from papers.kit.rules import VERDICTS, Outcome
    from papers.kit.store import PAPER, results_dir
    from papers.kit.study import Study
except ModuleNotFoundError as error:
    print(to_install(error), file=sys.stderr)
    sys.exit(2)

AFTER_STOP = "what was stored is whole, and a run goes on from its checkpoint when asked for again"
WRONG, STOPPED, CLOSED = 2, 130, 141  # exit statuses; the latter two as a shell counts signals
#: How our refusals read. Any other text of an error comes from the depths and is a bug to be seen.
SENTENCE = re.compile(r"[^\n:]{1,80}: [^\n]+\.")


class Parser(argparse.ArgumentParser):
    """A parser of arguments that refuses in one sentence."""

    def error(self, message: str) -> NoReturn:
        """End with status 2, without the usage, which `--help` shows."""
        self.exit(WRONG, f"{self.prog}: {message}; see --help.\n")


def carried_out(work: Callable[[], int], program: str, after_stop: str) -> int:
    """The exit status of `work`; what stops it ends in one sentence on stderr.

    `after_stop` says what becomes of work that Ctrl-C has stopped. Errors whose text is no sentence
    of ours pass.
    """
    try:
        status = work()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print(f"{program}: stopped; {after_stop}.", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:  # who read the output, such as `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would try again
        return CLOSED
    except (OSError, ValueError, TypeError, FloatingPointError, DataError) as error:
        if SENTENCE.fullmatch(str(error)) is None:
            raise
        print(error, file=sys.stderr)
        return WRONG
    return status


def parser() -> argparse.ArgumentParser:
    """The command line."""
    papers_parser = Parser(prog="papers", description=__doc__)
    version = f"%(prog)s of fedlib {__version__}"
    papers_parser.add_argument("--version", action="version", version=version)
    commands = papers_parser.add_subparsers(dest="command", required=True)
    _that_compute(commands)
    _that_look(commands)
    return papers_parser


def _that_compute(commands: argparse._SubParsersAction[Parser]) -> None:
    reproduce = commands.add_parser(
        "reproduce",
        help="compute a study's runs again and compare them with the stored ones",
        description="Compute a study's runs again, compare them with the stored ones, and note "
        "in results/recheck.json how far they agree. No run changes but with --store or --missing. "
        "Status 1 if a run differs or is not stored.",
    )
    reproduce.add_argument("study", help="its name, or all")
    reproduce.add_argument("--profile", default="full")
    reproduce.add_argument("--device", default="auto")
    stored = reproduce.add_mutually_exclusive_group()
    stored.add_argument(
        "--store", action="store_true", help="replace what is stored, do not compare"
    )
    stored.add_argument("--missing", action="store_true", help="compute and store only what is not")
    reproduce.add_argument("--runs", default="*", help="only runs with such a name, e.g. 'soft_*'")
    steps = reproduce.add_mutually_exclusive_group()
    steps.add_argument("--runs-only", action="store_true", help="derive no numbers")
    steps.add_argument("--numbers-only", action="store_true", help="compute nothing")
    runs = commands.add_parser(
        "runs", help="runs that are not stored as their paper has them, and their cost"
    )
    runs.add_argument("study", nargs="?", default="all", help="its name; all if none")
    runs.add_argument("--profile", default=PAPER)
    runs.add_argument("--json", action="store_true", help="as Snakefile reads it")
    recheck = commands.add_parser("recheck", help="recompute a sample of the stored runs")
    recheck.add_argument("study", nargs="*", help="of these studies; of all if none")
    recheck.add_argument("--seconds", type=float, default=60.0, help="how long, about")
    today = int(time.strftime("%Y%m%d"))
    recheck.add_argument("--seed", type=int, default=today, help="of the draw; the date if none")


def _that_look(commands: argparse._SubParsersAction[Parser]) -> None:
    claims = commands.add_parser("claims", help="one line a claim, from stored runs")
    claims.add_argument("--store", action="store_true", help="write papers/verdicts.json")
    claims.add_argument("--csv", metavar="FILE", help="write one row for each part of each claim")
    compare = commands.add_parser(
        "compare", help="two runs, and what differs in their configuration"
    )
    compare.add_argument("first", help="STUDY/RUN, STUDY/RUN@PROFILE, or a file of Trace.save")
    compare.add_argument("second", help="as first")


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 if it succeeded, 2 with one sentence if it could not be done."""
    return carried_out(lambda: carry_out(parser().parse_args(arguments)), "papers", AFTER_STOP)


def carry_out(options: argparse.Namespace) -> int:
    """Run the command of a command line."""
    if isinstance(getattr(options, "study", None), str):
        checks.one_of(options.command, "study", options.study, [*papers.STUDIES, "all"])
    if options.command == "compare":
        from papers.compare import compare  # here and below: help needs none of it

        print(compare(options.first, options.second))
    elif options.command == "runs":
        studies = chosen(options.study)
        if options.json:
            print(json.dumps(run_groups.to_do(studies, options.profile)))
        else:
            print("\n".join(run_groups.listed(studies, options.profile)))
    elif options.command == "claims":
        judge(options.store, options.csv)
    elif options.command == "recheck":
        for name in options.study:
            checks.one_of("recheck", "study", name, papers.STUDIES)
        checks.positive("recheck", "seconds", options.seconds)
        from papers.kit.reproduce import recheck

        return recheck(papers.STUDIES, options.study, options.seconds, options.seed)
    else:
        results = [reproduce(study, options) for study in chosen(options.study)]
        return int(not all(results))
    return 0


def judge(store: bool, csv: str | None) -> None:
    """Print all verdicts; store them, or write the table of all parts, where that is asked for."""
    if store:
        check_checkout()
    judged = papers.all_outcomes()
    list_claims(judged)
    if store:
        text = json.dumps(papers.verdicts(judged), indent=1, ensure_ascii=False)
        atomic_write(papers.VERDICTS, lambda file: file.write(f"{text}\n".encode()))
    if csv:
        table = parts.all_parts(papers.all_claims(), judged)
        parts.write_csv(table, Path(csv))
        print(f"{len(table)} parts in {csv}")


def reproduce(study: Study, options: argparse.Namespace) -> bool:
    """Store or compare the runs of a study; whether those that were compared are equal."""
    if options.numbers_only:
        say_numbers(study.name, "computed nothing", study.settle(options.profile))
    elif options.store or options.missing:
        numbers = study.reproduce(
            options.profile,
            device=options.device,
            recompute=options.store,
            runs=options.runs,
            settle=not options.runs_only,
        )
        say_numbers(study.name, f"stored the runs {options.runs}", numbers)
    else:
        from papers.kit.reproduce import check_study

        return check_study(study, options.profile, runs=options.runs, device=options.device)
    return True


def check_checkout() -> None:
    """Refuse to write verdicts where these modules are installed: they belong to a checkout."""
    if not (ROOT / "pyproject.toml").is_file():
        raise ValueError(
            f"claims: --store must be used in a checkout of the repository, got {ROOT}; "
            "without it the verdicts are printed."
        )


def chosen(study: str) -> list[Study]:
    """One study, or all."""
    return [*papers.STUDIES.values()] if study == "all" else [papers.STUDIES[study]]


def say_numbers(name: str, done: str, numbers: Mapping[str, object] | None) -> None:
    """Say what was done, and whether the numbers of a study were derived."""
    if numbers is None:
        print(f"{name}: {done}; its numbers are derived when all its runs are stored")
    else:
        path = os.path.relpath(results_dir() / f"{name}.json")
        print(f"{name}: {len(numbers)} numbers stored in {path}")


def list_claims(judged: Mapping[str, Mapping[str, Outcome]]) -> None:
    """Print id, verdict, measured value and stored runs of every claim; see `all_outcomes`."""
    count = dict.fromkeys(VERDICTS, 0)
    for study, claim in papers.all_claims():
        done = judged[claim.id][claim.reading]
        count[done.verdict] += 1
        runs = f"{study.name}/{claim.runs[0]}" + (
            f" +{len(claim.runs) - 1}" * (len(claim.runs) > 1)
        )
        why = done.reason.removeprefix("not judged, ")
        print(f"{claim.id:12} {done.label:28} {done.measured or why}  ({runs})")
    print(", ".join(f"{n} {verdict}" for verdict, n in count.items() if n))


def program() -> None:
    """The installed command `papers`."""
    sys.exit(main())


if __name__ == "__main__":
    program()
