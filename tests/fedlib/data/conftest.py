"""A local web site, an empty cache and four tiny files in place of MNIST's."""

import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fedlib import data
from tests.helpers.tiny_data import DEAD, TINY, idx, sha


class Site:
    """A local web site: `pages` by path, and a fault to plant."""

    def __init__(self):
        self.pages = {}
        self.fault = None
        self.asked = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.asked.append(self.path)
                content = next((c for p, c in site.pages.items() if p.endswith(self.path)), None)
                if site.fault == "status" or content is None:
                    self.send_error(503)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if site.fault == "wrong":
                    content = bytes(len(content))
                if site.fault == "cut":
                    content = content[: len(content) // 2]
                self.wfile.write(content)

            def log_message(self, *args):
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def site():
    site = Site()
    yield site
    site.close()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("FEDLIB_DATA", str(folder))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return folder


@pytest.fixture
def tiny(monkeypatch):
    """Replace MNIST's registry by four tiny files; gives {path: content} for a base URL."""

    def make(url=DEAD):
        contents = [idx(values) for values in TINY.values()]
        old = data.SOURCES["mnist"].files
        files = tuple(
            data.File(file.path, sha(content), f"{url}/{Path(file.path).name}")
            for file, content in zip(old, contents, strict=True)
        )
        monkeypatch.setitem(data.SOURCES, "mnist", replace(data.SOURCES["mnist"], files=files))
        return dict(zip((file.path for file in files), contents, strict=True))

    return make
