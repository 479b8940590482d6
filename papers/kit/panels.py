"""Figures said, not drawn by hand: panels made of layers, panels in rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from papers.kit import plot

K = TypeVar("K")
Layer = Callable[["plot.Axes"], None]


def on(drawing: Callable[..., Any], *arguments: Any, **options: Any) -> Layer:
    """A layer: what `drawing(ax, *arguments, **options)` draws."""

    def layer(ax: plot.Axes) -> None:
        drawing(ax, *arguments, **options)

    return layer


def panel(*layers: Layer, legend: bool | dict[str, Any] = False, **settings: Any) -> Layer:
    """Layers on one pair of axes in this order, then its frame.

    `legend` may be the options of `Axes.legend`; `settings` are those of `Axes.set`: title, xlabel,
    ylabel, xscale, ylim, ...
    """

    def draw(ax: plot.Axes) -> None:
        for layer in layers:
            layer(ax)
        ax.set(**settings)
        if legend is not False:
            ax.legend(**({} if legend is True else legend))

    return draw


def row(*panels: Layer, **options: Any) -> plot.Drawing:
    """A figure with its panels side by side; options of `Figure.subplots`, such as sharey."""
    return grid(panels, **options)


def grid(*rows: Sequence[Layer], **options: Any) -> plot.Drawing:

    def draw(fig: plot.Figure) -> None:
        axes = fig.subplots(len(rows), len(rows[0]), squeeze=False, **options)
        for line, panels in zip(axes, rows, strict=True):
            for ax, one in zip(line, panels, strict=True):
                one(ax)

    return draw


def columns(
    fill: Callable[[plot.Axes, K], None],
    titles: Mapping[K, str],
    *,
    ylabel: str = "",
    legend: bool | dict[str, Any] = False,
    at: int = 0,
    **frame: Any,
) -> list[Layer]:
    """Panels for a row, one a key of `titles`, filled by `fill(axes, key)`.

    The vertical axis is named at the left only; the legend is in panel `at`.
    """
    names = [*titles]
    return [
        panel(
            on(fill, name),
            title=titles[name],
            legend=legend if name == names[at] else False,
            **({"ylabel": ylabel} if ylabel and not i else {}),
            **frame,
        )
        for i, name in enumerate(names)
    ]
