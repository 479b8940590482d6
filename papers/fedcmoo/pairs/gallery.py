"""The first test pictures of every data set of two tasks, with what they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

SHOWN = 6  # pictures of a data set
KINDS = {  # what the two labels of a picture are
    "multi_mnist": ("digit", "digit"),
    "mnist_fashion": ("digit", "item"),
    "cifar10_mnist": ("object", "digit"),
}
CLASSES = {
    "item": "T-shirt,trouser,pullover,dress,coat,sandal,shirt,sneaker,bag,boot",
    "object": "plane,car,bird,cat,deer,dog,frog,horse,ship,truck",
}


def first_pictures(data: str) -> tuple[Any, list[str]]:
    """The first test pictures of a set and what they show.

    They are kept beside this file, so that the page can be made without the data.
    """
    path = Path(__file__).with_name("pictures.npz")
    with np.load(path) as kept:
        titles = [labels(KINDS[data], y) for y in kept[f"{data}_labels"].tolist()]
        return kept[data], titles


def labels(kinds: tuple[str, str], y: list[int]) -> str:
    words = []
    for name, number in zip(kinds, y, strict=True):
        names = CLASSES.get(name, "0,1,2,3,4,5,6,7,8,9").split(",")
        words.append(names[number])
    return " and ".join(words)
