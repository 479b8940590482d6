"""CelebA from a user's own copy: faces and their forty attributes.

Its terms allow non-commercial research alone and forbid to pass any part on, so nothing of it is
shipped or downloaded: ask for it at https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html and put into
the folder `celeba` of the cache (`FEDLIB_DATA`), as they are,

    list_attr_celeba.txt   number of pictures, names of attributes, then a line for every picture
    list_eval_partition.txt   picture and 0 (train), 1 (validation) or 2 (test)
    img_align_celeba/000001.jpg ...   the aligned and cropped pictures
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fedlib import checks
from fedlib.data import DataError, cache_folder
from papers.fedcmoo.data.attributes import Labelled
from papers.fedcmoo.data.pairs import Scale

NOTE = (
    "its terms forbid passing it on, so nothing ships or downloads it: ask for it at "
    "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html and keep it in your own cache"
)

#: Number of a split in `list_eval_partition.txt`.
SPLITS = {"train": "0", "validation": "1", "test": "2"}

#: The five tasks of CelebA-5 (appendix D of the FedCMOO paper).
CELEBA_5 = (
    "5_o_Clock_Shadow Blond_Hair Bags_Under_Eyes Eyeglasses "
    "Mustache Wavy_Hair Oval_Face Rosy_Cheeks",
    "Arched_Eyebrows Black_Hair Big_Nose Blurry Goatee Straight_Hair Pale_Skin Wearing_Earrings",
    "Attractive Brown_Hair Bushy_Eyebrows Double_Chin "
    "Mouth_Slightly_Open Receding_Hairline Wearing_Hat Young",
    "Bald Big_Lips Chubby Heavy_Makeup High_Cheekbones Male Sideburns Smiling",
    "Bangs Gray_Hair Narrow_Eyes No_Beard "
    "Pointy_Nose Wearing_Lipstick Wearing_Necklace Wearing_Necktie",
)

#: The attributes whose eight combinations split the pictures over clients.
CELLS = ("Attractive", "Male", "Mouth_Slightly_Open")

#: Means of red, green and blue as in the authors' code; no division by a deviation.
SCALE = Scale((72.392 / 255, 82.909 / 255, 73.158 / 255), (1.0, 1.0, 1.0))


def celeba(split: str, limit: int | None = None, side: int = 32) -> Labelled:
    """Pictures of `side` x `side` pixels (bilinear) with their attributes, in the files' order.

    Parameters
    ----------
    split : `"train"` (162,770 pictures), `"validation"` or `"test"`.
    limit : only the first so many.
    side : rows and columns of the pictures.

    Raises
    ------
    DataError
        if a file is not there or not of the format, with what to do about it.
    ValueError
        for another split, or a number out of range.
    """
    checks.one_of("celeba", "split", split, tuple(SPLITS))
    checks.count("celeba", "side", side)
    if limit is not None:
        checks.count("celeba", "limit", limit)
    folder = cache_folder() / "celeba"
    names, values = _attributes(folder / "list_attr_celeba.txt")
    part = [line.split() for line in _lines(folder / "list_eval_partition.txt") if line.strip()]
    chosen = [line[0] for line in part if line[-1] == SPLITS[split]][:limit]
    missing = [name for name in chosen if name not in values]
    if missing or not chosen:
        what = f"lacks a line for {missing[0]}" if missing else f"has no {split} picture"
        raise _error(folder / "list_attr_celeba.txt", what)
    a = torch.tensor([values[name] for name in chosen], dtype=torch.uint8)
    X = torch.stack([_picture(folder / "img_align_celeba" / name, side) for name in chosen])
    cells = sum(a[:, names.index(name)].long() << k for k, name in enumerate(CELLS))
    return Labelled(X, a, torch.as_tensor(cells), SCALE, names)


def group_numbers(names: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
    """The groups of CelebA-5 as numbers of attributes, for `problems.attributes`."""
    return tuple(tuple(names.index(name) for name in group.split()) for group in CELEBA_5)


def _attributes(path: Path) -> tuple[tuple[str, ...], dict[str, list[int]]]:
    """Names of the attributes, and 1 or 0 for each by file name."""
    lines = _lines(path)
    names = tuple(lines[1].split()) if len(lines) > 1 else ()
    wanted = {name for group in CELEBA_5 for name in group.split()}
    if set(names) != wanted or len(names) != len(wanted):
        raise _error(path, "does not name the 40 attributes in its second line")
    rows = [line.split() for line in lines[2:] if line.strip()]
    whole = all(len(row) == 41 and set(row[1:]) <= {"1", "-1"} for row in rows)
    if lines[0].strip() != str(len(rows)) or not whole:
        raise _error(path, "does not hold as many lines of 40 times 1 or -1 as it says")
    return names, {row[0]: [int(value == "1") for value in row[1:]] for row in rows}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").splitlines()
    except OSError as error:
        raise _error(path, "is not there") from error
    except UnicodeDecodeError as error:
        raise _error(path, "is not a text file") from error


def _picture(path: Path, side: int) -> Tensor:
    from PIL import Image

    try:
        with Image.open(path) as image:
            small = image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR)
    except OSError as error:
        raise _error(path, "is not a picture that is there") from error
    return torch.from_numpy(np.asarray(small).copy()).permute(2, 0, 1)


def _error(path: Path, problem: str) -> DataError:
    return DataError(f"celeba: {path} {problem}; {NOTE} (FEDLIB_DATA).")
