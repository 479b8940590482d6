"""Composite pictures at random, and files of CelebA's format: what tests of tasks are made on."""

import numpy as np
import torch

from papers.fedcmoo.data.pairs import CIFAR10_SCALE, MNIST_SCALE, Pairs


def random_pairs(count, seed=0, channels=1, names=("first", "second"), **options):
    rng = torch.Generator().manual_seed(seed)
    side, scale = (28, MNIST_SCALE) if channels == 1 else (32, CIFAR10_SCALE)
    X = torch.randint(0, 256, (count, channels, side, side), generator=rng, dtype=torch.uint8)
    return Pairs(X, torch.randint(10, (count, 2), generator=rng), names, scale, **options)


def celeba_files(folder, names, signs, parts, faces):
    """A copy of CelebA's files; `signs` are -1 or 1 by attribute, `parts` 0, 1, 2 (the split)."""
    from PIL import Image

    (folder / "img_align_celeba").mkdir(parents=True)
    files = [f"{i + 1:06d}.jpg" for i in range(len(signs))]
    rows = [f + " " + " ".join(f"{s:2d}" for s in row) for f, row in zip(files, signs, strict=True)]
    lines = "\n".join([str(len(files)), f"{names} ", *rows])
    (folder / "list_attr_celeba.txt").write_text(lines + "\n", encoding="utf-8")
    lines = "\n".join(f"{f} {part}" for f, part in zip(files, parts, strict=True))
    (folder / "list_eval_partition.txt").write_text(lines + "\n", encoding="utf-8")
    for name, face in zip(files, faces, strict=True):
        picture = Image.fromarray(np.broadcast_to(face, (218, 178, 3)).astype(np.uint8))
        picture.save(folder / "img_align_celeba" / name, quality=95)
