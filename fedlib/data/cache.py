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

    chosen = os.environ.get("FEDLIB_DATA")
    if chosen:
        return Path(chosen).expanduser().resolve()
    return Path(pooch.os_cache("fedlib"))


def available(name: str) -> bool:
    """Whether a data set can be loaded without network: all files exist with the right checksums.

    Raises ValueError for a name that is not in `SOURCES`.
    """
    checks.one_of("available", "name", name, SOURCES)
    source = SOURCES[name]
    if name in IN_SCIKIT_LEARN:
        return True
    return _are_intact(source.files) or _are_intact(source.instead)


def fetch(name: str) -> tuple[Path, ...]:
    """The paths of a data set's verified files; missing files are downloaded where possible.

    The two sets inside scikit-learn have no files. Raises `DataError` if a file is damaged or not
    available, ValueError for a name that is not in `SOURCES`.
    """
    checks.one_of("fetch", "name", name, SOURCES)
    source = SOURCES[name]
    files = source.files
    if use_instead(source):
        files = source.instead
    return tuple(get(name, file) for file in files)


def use_instead(source: Source) -> bool:
    """Whether to read the substitute files: they exist, and the usual files do not."""
    if not source.files:
        return True
    return _some_exist(source.instead) and not _some_exist(source.files)


def _some_exist(files: tuple[File, ...]) -> bool:
    """Whether at least one of the files is in the cache folder."""
    folder = cache_folder()
    return any(os.path.exists(folder / file.path) for file in files)


def get(name: str, file: File) -> Path:
    """The path of one verified file, downloaded if it is missing; raises `DataError`."""
    path = cache_folder() / file.path
    downloadable = file in SOURCES[name].files
    remedy = SOURCES[name].note
    if downloadable:
        remedy = f"get it again from {file.url}"
    fault = f"is not in {path.parent}; {remedy}"
    try:
        if _is_intact(file):
            return path
        if path.is_file():
            size = path.stat().st_size
            fault = (
                f"in {path.parent} has a wrong checksum ({size} bytes, truncated or changed); "
                f"delete it and {remedy}"
            )
        elif downloadable and not _OFFLINE.get():
            return _download(file, path)
    except (OSError, ValueError) as error:
        raise _data_error(name, path, _failure(file, path, error)) from error
    raise _data_error(name, path, fault)


def _data_error(name: str, path: Path, fault: str) -> DataError:
    """The error that names a file of a data set, its fault, and `FEDLIB_DATA`."""
    return DataError(
        f"{name}: {path.name} {fault}, or set FEDLIB_DATA to a cache folder that has it."
    )


def _failure(file: File, path: Path, error: Exception) -> str:
    """The fault of a file that could not be read or downloaded, with its reason."""
    reason = getattr(error, "strerror", None) or type(error).__name__
    if isinstance(error, ValueError):  # pooch's error
        reason = "what arrived has a wrong checksum"
    failure = f"is not in {path.parent} and its download from {file.url} failed"
    if path.exists():
        failure = f"in {path.parent} cannot be read"
    return f"{failure} ({reason}); put the file there by hand"


def _are_intact(files: tuple[File, ...]) -> bool:
    """Whether there are files, all with their checksums."""
    return bool(files) and all(map(_is_intact, files))


def _is_intact(file: File) -> bool:
    """Whether a file exists with its checksum; it is hashed once unless it changes."""
    path = cache_folder() / file.path
    algorithm, _, digest = file.checksum.rpartition(":")
    if not path.is_file():
        return False
    status = path.stat()
    version = (status.st_size, status.st_mtime_ns)
    return _digest(path, version, algorithm or "sha256") == digest


@lru_cache(maxsize=512)
def _digest(path: Path, version: tuple[int, int], algorithm: str) -> str:  # noqa: ARG001
    """The checksum of a file in a `version`, its size and time: a changed file is read again."""
    import pooch

    return str(pooch.file_hash(path, alg=algorithm))


def _download(file: File, path: Path) -> Path:
    """Download one file with pooch, which renames it to the target once its hash is right."""
    import pooch

    retrieved = pooch.retrieve(
        file.url,
        file.checksum,
        fname=path.name,
        path=path.parent,
        downloader=_stream,
    )
    return Path(retrieved)


def _stream(url: str, output: str, _pooch: Any) -> None:
    """A downloader for pooch, whose own leaves the connection open when a download fails."""
    import requests

    with requests.get(url, stream=True, timeout=30) as response:
        response.raise_for_status()
        with open(output, "wb") as file:
            for chunk in response.iter_content(1 << 16):
                file.write(chunk)
