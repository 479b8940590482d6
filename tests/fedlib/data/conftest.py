"""A local web site, an empty cache and four tiny files in place of MNIST's."""

import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from fedlib import data
from tests.helpers.tiny_data import DEAD, TINY, idx, sha


@pytest.fixture
def site(tmp_path):
    """A local web site: its folder, its address and the paths that it was requests for."""
    requests = []

    class Handler(SimpleHTTPRequestHandler):
        def log_request(self, *_):
            requests.append(self.path)

        def log_message(self, *_):
            """Quiet."""

    folder = tmp_path / "site"
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    yield SimpleNamespace(folder=folder, url=url, requests=requests)
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("FEDLIB_DATA", str(folder))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return folder


@pytest.fixture
def registered(monkeypatch):
    """Replace the files of a data set by others, of an address; gives {path: content}."""

    def register(name, contents, url=DEAD):
        files = [data.File(path, sha(x), f"{url}/{path}") for path, x in contents.items()]
        source = replace(data.SOURCES[name], files=tuple(files))
        monkeypatch.setitem(data.SOURCES, name, source)
        return contents

    return register


@pytest.fixture
def tiny(registered):
    """Replace MNIST's files by four tiny ones."""
    paths = [file.path for file in data.SOURCES["mnist"].files]
    contents = dict(zip(paths, map(idx, TINY.values()), strict=True))
    return partial(registered, "mnist", contents)
