"""The data cache: verified files, which pooch downloads if they are missing.

The cache folder is `FEDLIB_DATA`, or else the user's cache folder. A file with the right checksum
is used without any network, so the folder may be read-only. A missing file is downloaded where
possible. Any other case raises a `DataError` that names the file, its URL, its folder and
`FEDLIB_DATA`. No file of the cache is repaired or overwritten without notice.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any

from fedlib import checks
from fedlib.data.sources import IN_SCIKIT_LEARN, SOURCES, File, Source


class DataError(RuntimeError):
    """A data file is missing, damaged or not available; the message says what to do."""


_OFFLINE = ContextVar("_OFFLINE", default=False)


@contextmanager
def offline() -> Iterator[None]:
    """Within this context nothing is downloaded; a file that is missing raises `DataError`."""
    token = _OFFLINE.set(True)
    try:
        yield
    finally:
        _OFFLINE.reset(token)


def cache_folder() -> Path:
    """The cache folder: the environment variable `FEDLIB_DATA`, else the user's cache folder."""
    import pooch  # imported in functions, since problems without data files do not need it

    named = os.environ.get("FEDLIB_DATA")
    return Path(named).expanduser().resolve() if named else Path(pooch.os_cache("fedlib"))


def available(name: str) -> bool:
    """Whether a data set can be loaded without network: all files exist with the right checksums.

    Raises ValueError for a name that is not in `SOURCES`.
    """
    checks.one_of("available", "name", name, SOURCES)
    groups = [group for group in (SOURCES[name].files, SOURCES[name].instead) if group]
    return name in IN_SCIKIT_LEARN or any(all(map(_is_intact, group)) for group in groups)


def fetch(name: str) -> tuple[Path, ...]:
    """The paths of a data set's verified files; missing files are downloaded where possible.

    The two sets inside scikit-learn have no files. Raises `DataError` if a file is damaged or not
    available, ValueError for a name that is not in `SOURCES`.
    """
    checks.one_of("fetch", "name", name, SOURCES)
    source = SOURCES[name]
    group = source.instead if use_instead(source) else source.files
    return tuple(get(name, file) for file in group)


def use_instead(source: Source) -> bool:
    """Whether to read the substitute files: they exist, and the usual files do not."""

    def there(files: tuple[File, ...]) -> bool:
        return any(os.path.exists(cache_folder() / file.path) for file in files)

    return not source.files or (there(source.instead) and not there(source.files))


def get(name: str, file: File) -> Path:
    """The path of one verified file, downloaded if it is missing; raises `DataError`."""
    cause: Exception | None
    path, direct = cache_folder() / file.path, file in SOURCES[name].files
    remedy = f"get it again from {file.url}" if direct else SOURCES[name].note
    problem, cause = f"is not in {path.parent}; {remedy}", None
    try:
        if _is_intact(file):
            return path
        if path.is_file():
            size = f"{path.stat().st_size} bytes, truncated or changed"
            problem = f"in {path.parent} has a wrong checksum ({size}); delete it and {remedy}"
        elif direct and not _OFFLINE.get():
            return _download(file, path)
    except (OSError, ValueError) as error:  # pooch raises ValueError for a wrong checksum
        reason = getattr(error, "strerror", None) or type(error).__name__
        reason = "what arrived has a wrong checksum" if isinstance(error, ValueError) else reason
        what = f"is not in {path.parent} and its download from {file.url} failed"
        what = f"in {path.parent} cannot be read" if path.exists() else what
        problem, cause = f"{what} ({reason}); put the file there by hand", error
    sentence = f"{name}: {path.name} {problem}, or set FEDLIB_DATA to a cache folder that has it."
    raise DataError(sentence) from cause


def _is_intact(file: File) -> bool:
    """Whether a file exists with its checksum; it is hashed once unless it changes."""
    path, (algorithm, _, digest) = cache_folder() / file.path, file.checksum.rpartition(":")
    if not path.is_file():
        return False
    stat = path.stat()
    return _digest(str(path), stat.st_size, stat.st_mtime_ns, algorithm or "sha256") == digest


@lru_cache(maxsize=512)
def _digest(path: str, size: int, modified: int, algorithm: str) -> str:  # noqa: ARG001 cache key
    import pooch

    return str(pooch.file_hash(path, alg=algorithm))


def _download(file: File, path: Path) -> Path:
    """Download one file with pooch, which renames it to the target once its hash is right."""
    import pooch

    options = {"fname": path.name, "path": path.parent, "downloader": _stream}
    return Path(pooch.retrieve(file.url, file.checksum, **options))


def _stream(url: str, output: str, _pooch: Any) -> None:
    """A downloader for pooch, whose own leaves the connection open when a download fails."""
    import requests

    with requests.get(url, stream=True, timeout=30) as response, open(output, "wb") as file:
        response.raise_for_status()
        for chunk in response.iter_content(1 << 16):
            file.write(chunk)
