"""The data cache: verified files, downloaded with pooch where they are missing.

The cache folder is `FEDLIB_DATA`, else the user's cache. A file that is there with the right
checksum is used without any network (the folder may be read-only); a missing one is downloaded
where that is possible. Anything else is a `DataError` of one sentence that names the file, its
URL, its folder and `FEDLIB_DATA`; a file of the cache is never repaired or overwritten in silence.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from fedlib import checks
from fedlib.data.sources import IN_SCIKIT_LEARN, SOURCES, File, Source

if TYPE_CHECKING:
    import pooch


class DataError(RuntimeError):
    """A data file is missing, damaged or not to be had; the sentence says what to do."""


def cache_folder() -> Path:
    """The cache folder: the environment variable `FEDLIB_DATA`, else the user's cache folder.

    Raises ValueError where `FEDLIB_DATA` names a file or the home of nobody.
    """
    import pooch  # here and below: problems that need no file are imported without it

    named = os.environ.get("FEDLIB_DATA")
    checks.folder("data", "FEDLIB_DATA", named)
    return Path(named).expanduser().resolve() if named else Path(pooch.os_cache("fedlib"))


def registry() -> pooch.Pooch:
    """The pooch of every downloadable file, at the present cache folder."""
    import pooch

    files = [file for source in SOURCES.values() for file in source.files]
    return pooch.create(
        path=cache_folder(),
        base_url="",
        registry={file.path: file.checksum for file in files},
        urls={file.path: file.url for file in files},
    )


def available(name: str) -> bool:
    """Whether a data set can be loaded without network: all files there, checksums right.

    Raises ValueError for a name that is not in `SOURCES`.
    """
    checks.one_of("available", "name", name, SOURCES)
    source = SOURCES[name]
    groups = [group for group in (source.files, source.instead) if group]
    return name in IN_SCIKIT_LEARN or any(all(map(_is_whole, group)) for group in groups)


def fetch(name: str) -> tuple[Path, ...]:
    """Paths of the verified files of a data set; missing ones are downloaded where possible.

    Returns nothing for the two sets inside scikit-learn. Raises `DataError` when a file is damaged
    or cannot be had, ValueError for a name that is not in `SOURCES`.
    """
    checks.one_of("fetch", "name", name, SOURCES)
    source = SOURCES[name]
    if not source.files and not source.instead and name not in IN_SCIKIT_LEARN:
        raise DataError(f"{name}: {source.note} ({cache_folder()}, or set FEDLIB_DATA).")
    group = source.instead if use_instead(source) else source.files
    return tuple(get(name, file) for file in group)


def use_instead(source: Source) -> bool:
    """Whether to read the files that serve instead: they are there and the usual ones are not."""

    def there(files: tuple[File, ...]) -> bool:
        return any(os.path.exists(cache_folder() / file.path) for file in files)

    return not source.files or (there(source.instead) and not there(source.files))


def _is_whole(file: File) -> bool:
    try:
        return _matches(cache_folder() / file.path, file.checksum)
    except (OSError, ValueError):
        return False


def _matches(path: Path, checksum: str) -> bool:
    """Whether the file has the checksum; hashed once per process unless the file changes."""
    algorithm, _, digest = checksum.rpartition(":")
    stat = path.stat()
    return _digest(str(path), stat.st_size, stat.st_mtime_ns, algorithm or "sha256") == digest


@lru_cache(maxsize=512)
def _digest(path: str, size: int, modified: int, algorithm: str) -> str:  # noqa: ARG001 cache key
    import pooch

    return str(pooch.file_hash(path, alg=algorithm))


def get(name: str, file: File) -> Path:
    """Path of one verified file, downloaded if it is missing; raises `DataError`."""
    path = cache_folder() / file.path
    direct = file in SOURCES[name].files
    remedy = f"get it again from {file.url}" if direct else SOURCES[name].note
    try:
        if path.exists() and _matches(path, file.checksum):
            return path
        if path.exists():
            size = f"{path.stat().st_size} bytes, truncated or changed"
            problem = f"in {path.parent} has a wrong checksum ({size}); delete it and {remedy}"
            raise _error(name, path, problem)
    except OSError as error:
        problem = f"in {path.parent} cannot be read ({_reason(error)}); {remedy}"
        raise _error(name, path, problem) from error
    if not direct:
        raise _error(name, path, f"is not in {path.parent}; {remedy}")
    try:
        return _download(file, path)
    except (OSError, ValueError) as error:
        problem = (
            f"is not in {path.parent} and its download from {file.url} failed ({_reason(error)}); "
            "put the file there by hand"
        )
        raise _error(name, path, problem) from error


def _download(file: File, path: Path) -> Path:
    """Fetch one file with pooch, which writes beside the target and renames what has its hash."""
    made = [folder for folder in path.parents if not folder.exists()]
    try:
        return Path(registry().fetch(file.path, downloader=_stream))
    finally:
        for folder in made:  # deepest first; one that is not empty stays
            with suppress(OSError):
                folder.rmdir()


def _stream(url: str, output: str, _pooch: pooch.Pooch) -> None:
    """Downloader for pooch; its own one leaves the connection open when a download fails."""
    import requests

    with requests.get(url, stream=True, timeout=30) as response, open(output, "wb") as file:
        response.raise_for_status()
        for chunk in response.iter_content(1 << 16):
            file.write(chunk)


def _error(name: str, path: Path, problem: str) -> DataError:
    return DataError(
        f"{name}: {path.name} {problem}, or set FEDLIB_DATA to a cache folder that has it."
    )


def _reason(error: Exception) -> str:
    """A few words on what went wrong; the whole story is in the chained exception."""
    if isinstance(error, ValueError) and "hash" in str(error):
        return "what arrived has a wrong checksum"
    if isinstance(error, PermissionError):
        return "permission denied"  # pooch words its own, without strerror
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    response = getattr(error, "response", None)
    return f"HTTP status {response.status_code}" if response is not None else type(error).__name__
