"""The built book in a headless browser: mathematics and figures, and no request to outside."""

import functools
import html
import http.server
import json
import re
import shutil
import subprocess
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

HTML = Path(__file__).resolve().parents[2] / "_build" / "html"
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = [
    pytest.mark.skipif(
        not (HTML / "index.html").exists(), reason="no _build/html: make book builds it"
    ),
    pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine"),
]
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-default-apps", "--disable-domain-reliability", "--no-pings",
         "--disable-client-side-phishing-detection",
         "--disable-features=NetworkTimeServiceQuerying,OptimizationHints,MediaRouter,Translate",
         "--disable-extensions", "--mute-audio",
         "--virtual-time-budget=15000", "--dump-dom"]  # fmt: skip
# What the browser asks for itself, whatever page it shows; no page may use these hosts.
OWN = {
    "content-autofill.googleapis.com",
    "update.googleapis.com",
    "clients2.google.com",
    "accounts.google.com",
}
# Runs in the page after it has loaded, and leaves in the document what a dump would not show.
PROBE = """
<script>
addEventListener("load", () => {
  for (const i of document.images) i.loading = "eager";
  setTimeout(() => {
    const shown = [...document.images].filter((i) => getComputedStyle(i).display !== "none");
    const broken = shown.filter((i) => !(i.complete && i.naturalWidth > 0)).map((i) => i.src);
    document.documentElement.setAttribute("data-images", shown.length);
    document.documentElement.setAttribute("data-broken", broken.join(" "));
  }, 3000);
});
</script>
"""


class Site(http.server.SimpleHTTPRequestHandler):
    """The built book, with the probe put into every page."""

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if path.suffix != ".html" or not path.is_file():
            super().do_GET()
            return
        body = path.read_text(encoding="utf-8").replace("</body>", f"{self.server.extra}</body>")
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(body.encode())

    def send_error(self, code, *rest, **named):
        self.server.log.append(f"{code} {self.path}")
        super().send_error(code, *rest, **named)

    def log_message(self, *args):
        pass


class Outside(http.server.BaseHTTPRequestHandler):
    """A proxy that reaches nothing and remembers what was asked."""

    def refuse(self):
        host = urlsplit(self.path if "://" in self.path else f"//{self.path}").hostname
        if host not in OWN:
            self.server.log.append(f"{self.command} {self.path}")
        self.send_error(502)

    do_GET = do_POST = do_HEAD = do_CONNECT = refuse

    def log_message(self, *args):
        pass


@pytest.fixture
def serve():
    """Starts servers on loopback and stops them at the end."""
    running = []

    def start(handler, extra=""):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.log, server.extra = [], extra
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        running.append((server, thread))
        return server

    yield start
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


def port(server):
    return server.server_address[1]


@pytest.fixture
def visit(serve, tmp_path):
    """Opens a page of the book; returns the DOM, what failed, and what was asked outside."""

    def open_page(name, extra=""):
        site = serve(functools.partial(Site, directory=str(HTML)), PROBE + extra)
        proxy = serve(Outside)
        done = subprocess.run(
            [BROWSER, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}",
             f"--proxy-server=http://127.0.0.1:{port(proxy)}",
             f"http://127.0.0.1:{port(site)}/{name}"],
            capture_output=True, encoding="utf-8", timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout, site.log, proxy.log

    return open_page


PAGES = sorted(
    p.relative_to(HTML).as_posix()
    for p in (*HTML.glob("book/**/*.html"), *HTML.glob("notebooks/**/*.html"))
)


@pytest.mark.parametrize("name", PAGES)
def test_page_renders_offline(visit, name):
    dom, failed, outside = visit(name)
    assert not outside
    assert not failed
    source = (HTML / name).read_text(encoding="utf-8")
    formulas = len(re.findall(r'class="math notranslate', source))
    assert dom.count("<mjx-container") >= formulas
    assert "<mjx-merror" not in dom
    broken = re.search(r'data-broken="([^"]*)"', dom)
    assert broken, "the probe did not run"
    assert not broken.group(1)
    if re.search(r"<img [^>]*fig-light", source):
        assert int(re.search(r'data-images="(\d+)"', dom).group(1)) > 0


def test_some_page_has_mathematics():
    assert any('class="math notranslate' in (HTML / p).read_text(encoding="utf-8") for p in PAGES)


CHOOSE = """<script>
addEventListener("load", () => setTimeout(() => {{
  for (const name of {names})
    document.querySelector(`.claims-filter [data-show="${{name}}"]`).click();
  const bar = document.querySelector(".claims-filter");
  const table = document.querySelector("table.claims, table.claims-board");
  const report = [...table.tBodies[0].rows].map((row) => (row.hidden ? "-" : "+") + row.className);
  document.documentElement.dataset.bar = bar.hidden;
  document.documentElement.dataset.rows = report.join("|");
  document.documentElement.dataset.count = bar.querySelector(".claims-count").textContent;
  document.documentElement.dataset.pressed =
    [...bar.querySelectorAll("[aria-pressed=true]")].map((b) => b.dataset.show).join("|");
}}, 500));
</script>"""


def noted(dom, name):
    """What a script left at the top of the document."""
    return html.unescape(re.search(rf'<html[^>]* data-{name}="([^"]*)"', dom)[1])


@pytest.mark.parametrize("name", ["book/claims.html", "book/index.html"])
@pytest.mark.parametrize(
    "chosen", [["claim-partly"], ["paper-f"], ["paper-c", "claim-reproduced"], ["paper-f", ""]]
)
def test_claims_can_be_narrowed_to_a_paper_and_to_a_verdict(visit, name, chosen):
    dom, _, _ = visit(name, CHOOSE.format(names=json.dumps(chosen)))
    assert noted(dom, "bar") == "false"
    wanted = {x for x in chosen if x} if chosen[-1] else set()
    rows = noted(dom, "rows").split("|")
    for row in rows:
        assert row.startswith("+") == (wanted <= set(row[1:].split())), row
    left = sum(row.startswith("+") for row in rows)
    assert left > 0
    whole = f"{left} claims" if left == len(rows) else f"{left} of {len(rows)} claims"
    assert noted(dom, "count") == whole
    assert {x for x in noted(dom, "pressed").split("|") if x} == wanted


HOVER = """<script>
addEventListener("load", () => setTimeout(async () => {{
  const link = document.querySelector('.bd-article a.internal[href*="{target}"]');
  {act}
  await new Promise((resolve) => setTimeout(resolve, 3000));
  const box = document.getElementById("preview");
  document.documentElement.dataset.hidden = box.hidden;
  document.documentElement.dataset.described = link.getAttribute("aria-describedby");
  document.documentElement.dataset.formulas = box.querySelectorAll("mjx-container").length;
  document.documentElement.dataset.text = box.textContent;
  dispatchEvent(new KeyboardEvent("keydown", {{ key: "Escape" }}));
  document.documentElement.dataset.after = box.hidden;
}}, 1500));
</script>"""
POINT = 'link.dispatchEvent(new Event("mouseenter"));'
FOCUS = 'link.matches = () => true; link.dispatchEvent(new Event("focus"));'


@pytest.mark.parametrize("act", [POINT, FOCUS], ids=["pointer", "keyboard"])
@pytest.mark.parametrize(
    ("target", "words"), [("#equation-eq-soft-regret", "("), ("#soft-theorem", "Theorem")]
)
def test_a_link_shows_what_it_leads_to(visit, target, words, act):
    page = "notebooks/executed/note_soft_switching.html"
    dom, failed, outside = visit(page, HOVER.format(target=target, act=act))
    assert noted(dom, "hidden") == "false"
    assert noted(dom, "described") == "preview"
    assert int(noted(dom, "formulas")) > 0
    assert words in noted(dom, "text")
    assert "\\(" not in noted(dom, "text")  # typeset, not as it is written
    assert noted(dom, "after") == "true"
    assert not failed
    assert not outside


def test_a_request_to_outside_would_be_seen(visit):
    picture = '<img alt="outside" src="http://outside.invalid/picture.png">'
    _, _, outside = visit("book/references.html", picture)
    assert outside == ["GET http://outside.invalid/picture.png"]
