"""Packages that the studies need and the library does not."""


def to_install(missing: ModuleNotFoundError) -> str:
    """The sentence that says what to install where a package is missing."""
    return (
        f"papers: {missing.name} must be installed, with all that the studies need; run "
        "pip install -e . -e ./papers in a checkout."
    )
