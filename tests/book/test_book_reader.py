"""Settings under figures, the explorer's data and links, the API's pages."""

import json
import re
from types import SimpleNamespace

import pytest
import test_book_figures
import yaml
from toy_book import BOOK

extension = test_book_figures.extension


def test_settings_stand_in_the_order_in_which_one_asks_for_them(extension):
    config = {
        "algorithm": {
            "type": "Around",
            "own": True,
            "method": {
                "type": "FedSGM", "lr": 0.3, "local_steps": 5, "participants": None,
                "uplink": {"type": "TopK", "fraction": 0.1, "scaled": True}, "tolerance": 0.05,
            },
        },
        "problem": {"clients": 20, "data": "adult", "alpha": None},
        "rounds": 100, "seeds": [0, 1, 2], "evaluate_every": 1,
        "bits": {"bits_up": 1.0, "bits_down": 1.0},
    }  # fmt: skip
    assert list(extension("fedbook_figures").flat(config).items()) == [
        ("method", "FedSGM"),
        ("clients N", "20"),
        ("participants n", "all"),
        ("local steps E", "5"),
        ("step size", "0.3"),
        ("up (K/d)", "TopK (fraction 0.1, scaled yes)"),
        ("rounds T", "100"),
        ("seeds", "0 to 2"),
        ("data", "adult"),
        ("tolerance", "0.05"),
    ]


def test_many_values_are_abridged(extension):
    listed = extension("fedbook_figures").listed
    assert listed(["0.1", "0.3"]) == "0.1, 0.3"
    assert listed([str(n) for n in range(20)]) == "0, 1, … 19 (20 values)"


def test_a_link_to_the_explorer_has_the_choice_in_its_address(extension):
    env = SimpleNamespace(docname="notebooks/toy", found_docs={"book/explorer"})
    (link,) = extension("fedbook_study").explorer_link(env, "toy", ["hard", "soft_K0.1"])
    assert link["refuri"] == "../book/explorer.html?study=toy&runs=hard,soft_K0.1"
    env.found_docs = set()
    assert extension("fedbook_study").explorer_link(env, "toy", ["hard"]) == []


def test_the_explorers_data_are_a_script_with_shared_settings_once(extension):
    from papers import STUDIES

    module = extension("fedbook_study")
    text = module.script("np_workshop", module.curves_of(STUDIES["np_workshop"]))
    data = json.loads(text.removeprefix('window.fedRuns("np_workshop", ').removesuffix(");\n"))
    assert data["shared"]["data"] == "breast_cancer"
    assert all("data" not in run["set"] for run in data["runs"].values())
    assert data["runs"]["hard_lr0.5"]["set"]["step size"] == "0.5"
    assert data["runs"]["hard"]["y"]["g"][1][0] == 0.69315


def test_the_chart_is_one_that_vega_draws(extension):
    import vl_convert

    chart = extension("fedbook_study").chart()
    rows = [{"run": "a", "x": x, "mean": x, "low": x - 1, "high": x + 1} for x in range(3)]
    svg = vl_convert.vegalite_to_svg({**chart, "width": 300, "datasets": {"curves": rows}})
    assert svg.count("mark-area") == svg.count("mark-line") == 1


LISTED = """# API

### fedlib.core.trace

```{eval-rst}
.. automodule:: fedlib.core.trace
   :members:
```

### fedlib.metrics

```{eval-rst}
.. automodule:: fedlib.metrics
```
"""


def test_the_api_is_split_by_package(extension):
    api = extension("fedbook_api")
    packages = ["fedlib", "fedlib.core"]
    links = api.links(LISTED, packages)
    assert "automodule" not in links
    assert "* {py:mod}`fedlib.metrics`: " in links
    assert all(line.endswith(".") for line in links.splitlines() if line.startswith("*"))
    assert api.part(LISTED, "fedlib.core", packages).startswith("## fedlib.core.trace\n")
    assert "fedlib.metrics" not in api.part(LISTED, "fedlib.core", packages)
    with pytest.raises(extension("fedbook_data").BookError, match=r"fedlib\.metrics must have"):
        api.links(LISTED, ["fedlib.core"])


def test_every_file_of_algorithms_is_in_the_api(extension):
    api = extension("fedbook_api")
    text = api.listed(BOOK / "api.md")
    assert api.ALGORITHMS not in text
    files = (BOOK.parent / "fedlib" / "algorithms").glob("[!_]*.py")
    modules = [f"fedlib.algorithms.{file.stem}" for file in files]
    own = api.part(text, "fedlib.algorithms", ["fedlib", "fedlib.algorithms"])
    assert sorted(re.findall(r"automodule:: (\S+)", own)) == sorted(modules)


def test_every_page_of_the_api_is_in_the_table_of_contents():
    text = json.dumps(yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8")))
    for path in (BOOK / "api").glob("*.md"):
        assert f'"book/api/{path.stem}"' in text
