"""Two pictures in one: MultiMNIST, MNIST with Fashion-MNIST, CIFAR-10 with a digit on it.

The composite sets of the multi-task experiments of Askin, Sharma, Joshi, Joe-Wong, *Federated
Communication-Efficient Multi-Objective Optimization*, AISTATS 2025. The paper says how they look
(Figs. 5-7), its authors' code where the pictures lie; the geometry here is that of the code.
Composites are kept as bytes, not as numbers: 47 MB for 60,000 pictures of 28 x 28 pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from fedlib import data

SIDE = 28  # pixels of a digit or an item
OPACITY = 156  # of 255: how much a digit hides of the picture below it
CHUNK = 5000  # pictures rotated at a time

#: The sets that `load` knows.
NAMES = ("multi_mnist", "mnist_fashion", "cifar10_mnist")


@dataclass(frozen=True)
class Scale:
    """How bytes become numbers: (x / 255 - mean) / std, one mean and one std a channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __call__(self, X: UInt8[Tensor, "*b c h w"]) -> Float[Tensor, "*b c h w"]:
        """The numbers that a network is given, float32."""
        mean = torch.tensor(self.mean, device=X.device)
        std = torch.tensor(self.std, device=X.device)
        centred = X.float() / 255 - mean.view(-1, 1, 1)
        return centred / std.view(-1, 1, 1)


MNIST_SCALE = Scale((0.1307,), (0.3081,))
CIFAR10_SCALE = Scale((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Composite pictures and the two labels of each, as tensors on the CPU."""

    X: UInt8[Tensor, "R c h w"]
    y: Int[Tensor, "R 2"]
    names: tuple[str, str]  # of the two tasks
    scale: Scale
    angle: int = 25  # augmentation turns pictures by up to so many degrees
    nearest: bool = False  # whether a turned picture takes whole angles and the nearest pixels
    mirror: float = 0.0  # the chance that augmentation mirrors a picture
    exact: Bool[Tensor, "R"] | None = None  # CIFAR-10: which pictures are the canonical pixels

    def cells(self) -> Int[Tensor, "R"]:
        """The composite label 10 y_1 + y_2, by which the papers split the rows over clients."""
        return 10 * self.y[:, 0] + self.y[:, 1]


@lru_cache(maxsize=4)
def load(name: str, split: str, limit: int = 0) -> Pairs:
    """The composite set `name`, one of `NAMES`, as its own function makes it; all for a limit of 0.

    Raises
    ------
    DataError
        if a file is neither in the cache nor to be had.
    """
    makers = {
        "multi_mnist": multi_mnist,
        "mnist_fashion": mnist_fashion,
        "cifar10_mnist": cifar10_mnist,
    }
    return makers[name](split, limit or None)


def multi_mnist(split: str, limit: int | None = None) -> Pairs:
    """Two MNIST digits, top left and bottom right, overlapping; 28 x 28 pixels.

    On a black canvas of 36 x 36 the left digit has rows and columns 0-27 and the right one 6-33,
    with the larger value where both lie; nearest pixels then bring it to 28 x 28. Every picture is
    the left digit once, its partner a uniform draw from the same split.

    Parameters
    ----------
    split : `"train"` (60,000 pictures) or `"test"` (10,000).
    limit : only the first so many pictures; partners still come from the whole split.
    """
    table = data.mnist(split)
    count = len(table.y)
    partners = torch.randint(count, (count,), generator=_rng(split))
    partner = partners[:limit]
    X = beside(table.X[:limit], table.X[partner], side=36, offset=6)
    return Pairs(
        X=X.unsqueeze(1),
        y=torch.stack([table.y[:limit], table.y[partner]], 1),
        names=("left digit", "right digit"),
        scale=MNIST_SCALE,
    )


def mnist_fashion(split: str, limit: int | None = None) -> Pairs:
    """An MNIST digit top left and a Fashion-MNIST item bottom right; 28 x 28 pixels.

    On a black canvas of 42 x 42 the digit has rows and columns 0-27 and the item 14-41, with the
    larger value where both lie; nearest pixels then bring it to 28 x 28. Items are partners by a
    random permutation: each is used once. Parameters as in `multi_mnist`.
    """
    digit = data.mnist(split)
    item = data.fashion_mnist(split)
    partners = torch.randperm(len(item.y), generator=_rng(split))
    partner = partners[:limit]
    X = beside(digit.X[:limit], item.X[partner], side=42, offset=14)
    return Pairs(
        X=X.unsqueeze(1),
        y=torch.stack([digit.y[:limit], item.y[partner]], 1),
        names=("digit", "item"),
        scale=MNIST_SCALE,
    )


def cifar10_mnist(split: str, limit: int | None = None) -> Pairs:
    """A CIFAR-10 picture with an MNIST digit in its middle; 3 x 32 x 32 pixels.

    Picture i carries digit i of the same split. Of a packed CIFAR-10 test set only the first 1,000
    pictures are the canonical pixels (`exact` says which): an accuracy over more is not the one of
    the papers. (Their text also calls this set CIFAR10+FMNIST; the pictures carry digits.)

    Parameters
    ----------
    split : `"train"` (50,000 pictures) or `"test"` (10,000).
    limit : only the first so many pictures.
    """
    table = data.cifar10(split)
    digit = data.mnist(split)
    count = limit or len(table.X)  # MNIST has more digits
    pictures = table.X[:count].permute(0, 3, 1, 2)
    return Pairs(
        X=blended(pictures, digit.X[:count]),
        y=torch.stack([table.y[:count], digit.y[:count]], 1),
        names=("object", "digit"),
        scale=CIFAR10_SCALE,
        angle=30,
        nearest=True,
        mirror=0.4,
        exact=None if table.exact is None else table.exact[:count],
    )


def beside(
    left: UInt8[Tensor, "R 28 28"],
    right: UInt8[Tensor, "R 28 28"],
    side: int,
    offset: int,
) -> UInt8[Tensor, "R 28 28"]:
    """Two pictures on one canvas, brought to the size of one.

    Parameters
    ----------
    left : lies at rows and columns 0-27 of the canvas.
    right : lies at rows and columns `offset` to `offset` + 27; the larger value wins.
    side : rows and columns of the canvas. Pixel i of the result is pixel
        floor((i + 1/2) side / 28) of the canvas, the one nearest to its centre.
    """
    canvas = left.new_zeros(len(left), side, side)
    canvas[:, :SIDE, :SIDE] = left
    window = canvas[:, offset : offset + SIDE, offset : offset + SIDE]
    torch.maximum(window, right, out=window)
    centres = 2 * torch.arange(SIDE) + 1
    nearest = centres * side // (2 * SIDE)
    return canvas[:, nearest][:, :, nearest]


def blended(
    below: UInt8[Tensor, "R 3 32 32"], digit: UInt8[Tensor, "R 28 28"]
) -> UInt8[Tensor, "R 3 32 32"]:
    """A digit over the middle of a picture, all channels, where the digit is not black.

    There the result is 156/255 of the digit and 99/255 of the picture, rounded; the digit keeps
    its size and lies at rows and columns 2-29.
    """
    result = below.clone()
    window = result[:, :, 2 : 2 + SIDE, 2 : 2 + SIDE]
    over = digit.unsqueeze(1)
    weighted = OPACITY * over.int() + (255 - OPACITY) * window.int()
    mixed = (weighted + 127) // 255  # rounded
    window[:] = torch.where(over > 0, mixed.to(torch.uint8), window)
    return result


def rotated(
    X: UInt8[Tensor, "R c h h"],
    degrees: Float[Tensor, "R"],
    *,
    fill: float = 0.0,
    nearest: bool = False,
) -> UInt8[Tensor, "R c h h"]:
    """Every picture turned counter-clockwise about its centre by its own angle.

    Parameters
    ----------
    X : pictures, square.
    degrees : the angles.
    fill : the value, 0-255, of what comes in from outside.
    nearest : take the nearest pixel, in place of bilinear interpolation and rounding.
    """
    mode = "nearest" if nearest else "bilinear"
    turned = []
    chunks = zip(torch.split(X, CHUNK), torch.split(degrees, CHUNK), strict=True)
    for pictures, angles in chunks:
        matrices = rotation(torch.deg2rad(angles.float()))
        source = affine_grid(matrices, list(pictures.shape), align_corners=False)
        above_fill = pictures.float() - fill
        moved = grid_sample(above_fill, source, mode=mode, align_corners=False)
        values = (moved + fill).round()
        turned.append(values.clamp(0, 255).to(torch.uint8))
    return torch.cat(turned)


def rotation(turn: Float[Tensor, "R"]) -> Float[Tensor, "R 2 3"]:
    """From the result's coordinates (x to the right, y down) to those of the source."""
    cos = turn.cos()
    sin = turn.sin()
    zero = torch.zeros_like(turn)
    entries = [cos, -sin, zero, sin, cos, zero]
    return torch.stack(entries, -1).view(-1, 2, 3)


def augmented(pairs: Pairs, copies: int, rng: torch.Generator) -> UInt8[Tensor, "rows c h h"]:
    """Copies of all pictures, each turned by an angle of its own; copy k of row r is row k R + r.

    Angles are uniform up to `pairs.angle`, and whole where `pairs.nearest`; a picture is mirrored
    with chance `pairs.mirror`. What comes in from outside is the mean grey of MNIST (zero after
    scaling) for bilinear turns, black for nearest ones. The papers' code draws angles anew
    whenever a picture is read (and mirrors whole batches); here `copies` of them are drawn once, so
    that the clients' losses stay means over fixed rows.

    Parameters
    ----------
    pairs : the pictures.
    copies : how many of each, at least 1.
    rng : draws angles and mirrors.
    """
    fill = 0.0 if pairs.nearest else 255 * pairs.scale.mean[0]
    turned = []
    for _ in range(copies):
        angles = drawn_angles(pairs, rng)
        X = rotated(pairs.X, angles, fill=fill, nearest=pairs.nearest)
        if pairs.mirror:
            is_flipped = torch.rand(len(X), generator=rng) < pairs.mirror
            X = torch.where(is_flipped.view(-1, 1, 1, 1), X.flip(-1), X)
        turned.append(X)
    return torch.cat(turned)


def drawn_angles(pairs: Pairs, rng: torch.Generator) -> Float[Tensor, "R"]:
    """An angle for every picture, uniform up to `pairs.angle`; whole where `pairs.nearest`."""
    share = torch.rand(len(pairs.X), generator=rng)
    if not pairs.nearest:
        return pairs.angle * (2 * share - 1)
    angles = 2 * pairs.angle + 1
    return torch.floor(angles * share) - pairs.angle


def _rng(split: str) -> torch.Generator:
    """Another stream for each split: partners of the two must not repeat each other."""
    return torch.Generator().manual_seed(int(split == "test"))
