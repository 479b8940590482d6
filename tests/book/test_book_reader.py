"""Settings under figures, the API's pages."""

import json
import re

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
