"""The explorer: stored curves drawn in the reader's browser, and links to it from figures.

Directive ``explorer`` makes the controls; `explorer.js` fills them. The drawing is a Vega-Altair
chart whose data the browser puts in. Curves are scripts and not JSON, one file a study, because a
page opened from a folder may not fetch other files.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from docutils import nodes
from fedbook_data import BookDirective, files_of, raw
from fedbook_settings import flat
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

if TYPE_CHECKING:
    from papers.kit.study import Study

PAGE = "book/explorer"
MOST_LINKED = 10  # runs that a link under a figure chooses

CONTROLS = """
<form class="explorer-form" aria-label="What is drawn">
<label>Study <select name="study"></select></label>
<label>Quantity <select name="metric"></select></label>
<label>Against <select name="axis">{axes}</select></label>
<label>Runs whose name has <input name="filter" type="search" autocomplete="off"></label>
<label class="explorer-runs">Runs <select name="runs" multiple size="8"></select></label>
<label class="explorer-check"><input name="log" type="checkbox"> logarithmic</label>
</form>
<p class="explorer-said" role="status"></p>
<div class="explorer-chart wide-page" role="img" aria-label="Chart of the chosen runs"></div>
<p class="explorer-files">
<a class="explorer-png" href="#explorer-code">PNG</a>
<a class="explorer-svg" href="#explorer-code">SVG</a>
<a class="explorer-csv" href="#explorer-code">CSV</a>
<a class="explorer-page" href="index.html">the study's page</a>
</p>
<div class="explorer-settings scroll-cue" tabindex="0" role="region"
 aria-label="Settings of the chosen runs"></div>
<h2 id="explorer-code">The code that draws it</h2>
<p>It runs as it stands, in the top folder, and writes the picture and the numbers of all seeds:</p>
<pre class="explorer-code" tabindex="0"></pre>
<p><button type="button" class="explorer-copy">Copy the code</button></p>
<noscript>The explorer needs JavaScript.</noscript>
"""


class Explorer(BookDirective):
    """``{explorer}``: the controls, empty until `explorer.js` fills them."""

    kind = "explorer"

    def build(self) -> list[nodes.Node]:
        """The form and the places for what it leads to; the scripts are of this page alone."""
        from papers import STUDIES
        from papers.kit.explore import AXES

        self.env.note_dependency(__file__)
        axes = "".join(f'<option value="{k}">{escape(v)}</option>' for k, v in AXES.items())
        titles = {name: study.title for name, study in STUDIES.items()}
        start = json.dumps({"studies": titles, "axes": AXES, "chart": chart()})
        scripts = (
            f"<script>window.fedExplorer = {start};</script>"
            '<script src="../_static/vendor/vega.js" defer></script>'
            '<script src="../_static/explorer.js" defer></script>'
        )
        return [raw(CONTROLS.format(axes=axes)), raw(scripts)]


def chart() -> dict[str, Any]:
    """The chart as Vega-Lite: mean and band a run; the browser adds data, titles and scales."""
    import altair as alt

    from papers.kit.plot import COLORS

    near = alt.selection_point(
        name="near", on="pointerover", nearest=True, fields=["run"], empty=False, clear="pointerout"
    )
    empty = alt.Data(name="curves")
    color = alt.Color("run:N", sort=None, scale=alt.Scale(range=list(COLORS))).legend(
        orient="bottom",
        columns=3,
        labelLimit=260,
        title=None,
        symbolType="stroke",
        symbolOpacity=1,
        symbolStrokeWidth=3,
    )
    base = alt.Chart(empty).encode(x=alt.X("x:Q"), color=color)
    band = base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q"), y2="high:Q")
    line = base.mark_line().encode(
        y=alt.Y("mean:Q"), strokeWidth=alt.when(near).then(alt.value(3.5)).otherwise(alt.value(1.7))
    )
    points = base.mark_point(opacity=0, size=60).encode(y="mean:Q").add_params(near)
    layers = alt.layer(band, line, points)
    made: dict[str, Any] = layers.properties(height=380).to_dict()
    return made


def data_of(study: Study) -> dict[str, Any]:
    """Everything that the explorer draws of a study; settings that all runs share stand once."""
    from papers.kit.explore import thinned

    traces = study.load("full")
    settings = {name: flat(trace.config) for name, trace in traces.items()}
    first = next(iter(settings.values()))
    shared = {k: v for k, v in first.items() if all(one.get(k) == v for one in settings.values())}
    return {
        "title": study.title,
        "shared": shared,
        "runs": {
            name: {
                **thinned(trace),
                "set": {k: v for k, v in settings[name].items() if k not in shared},
            }
            for name, trace in traces.items()
            if trace.metrics or trace.info
        },
    }


def link(env: BuildEnvironment, study: str, runs: Iterable[str]) -> list[nodes.Node]:
    """A link to the explorer with the choice in its address; nothing in a book without it."""
    if PAGE not in env.found_docs:
        return []
    chosen = list(runs)[:MOST_LINKED]
    asked = {"study": study, **({"runs": ",".join(chosen)} if chosen else {})}
    query = urlencode(asked, safe=",")
    top = "../" * env.docname.count("/")
    text = "explore these runs" if chosen else "explore them"
    return [nodes.reference(text, text, refuri=f"{top}{PAGE}.html?{query}", classes=["explore"])]


def write(app: Sphinx, error: Exception | None) -> None:
    """Writes Vega's scripts and the curves of every study beside the pages."""
    for path in (Path(app.outdir) / "_static").rglob("*.map"):
        path.unlink()  # of the theme's scripts, for those who change them: a tenth of the book
    shutil.rmtree(Path(app.outdir) / "_static" / "locales", ignore_errors=True)  # of the theme
    if error is not None or app.builder.name != "html" or PAGE not in app.env.found_docs:
        return
    import vl_convert

    from papers import STUDIES

    folder = Path(app.outdir) / "_static"
    vega = folder / "vendor" / "vega.js"
    if not vega.is_file():
        bundle = vl_convert.javascript_bundle()  # its short names are those of other scripts too
        vega.write_text(f"(() => {{{bundle}}})();\n", encoding="utf-8")
    (folder / "runs").mkdir(exist_ok=True)
    for name, study in STUDIES.items():
        path = folder / "runs" / f"{name}.js"
        stored = max(p.stat().st_mtime for p in files_of(name))
        if path.is_file() and path.stat().st_mtime > stored:
            continue
        path.write_text(script(name, data_of(study)), encoding="utf-8")


def script(name: str, data: Mapping[str, Any]) -> str:
    """A script that hands the data of a study to the page."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f"window.fedRuns({json.dumps(name)}, {text});\n"


def setup(app: Sphinx) -> None:
    """Registers the directive; the data are written after the pages."""
    app.add_directive("explorer", Explorer)
    app.connect("build-finished", write)
