"""The built book in a headless browser: mathematics and figures, and no request to outside."""

import functools
import http.server
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
OWN = {"update.googleapis.com", "clients2.google.com", "accounts.google.com"}
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
            capture_output=True, text=True, timeout=120, check=False,
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
    assert any('class="math notranslate' in (HTML / p).read_text() for p in PAGES)


def test_filter_of_the_claims_hides_the_others(visit):
    click = """<script>
    addEventListener("load", () => setTimeout(() => {
      document.querySelectorAll(".claims-filter button")[1].click();
    }, 500));
    </script>"""
    dom, _, _ = visit("book/claims.html", click)
    assert re.search(r'<div class="claims-filter"[^>]*>', dom).group().count("hidden") == 0
    rows = re.findall(r'<tr class="([^"]*)"[^>]*id="claim-[^>]*>', dom)
    all_rows = re.findall(r'<tr [^>]*id="claim-[^>]*>', dom)
    chosen = re.findall(r'data-show="([^"]*)"', dom)[1]
    assert rows
    for row in all_rows:
        assert (' hidden=""' in row) != (f"claim-{chosen}" in row.split("id=")[0])


def test_a_request_to_outside_would_be_seen(visit):
    picture = '<img alt="outside" src="http://outside.invalid/picture.png">'
    _, _, outside = visit("book/references.html", picture)
    assert outside == ["GET http://outside.invalid/picture.png"]
