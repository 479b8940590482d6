"""CelebA from a user's own copy: generated files of its format, planted faults."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from composite import celeba_files
from expect import refuses

from fedlib.data import DataError
from papers.fedcmoo.data import celeba
from papers.fedcmoo.data.attributes import Labelled
from papers.fedcmoo.problems.attributes import attributes

# the order of the second line of list_attr_celeba.txt
ORDER = (
    "5_o_Clock_Shadow Arched_Eyebrows Attractive Bags_Under_Eyes Bald Bangs Big_Lips Big_Nose "
    "Black_Hair Blond_Hair Blurry Brown_Hair Bushy_Eyebrows Chubby Double_Chin Eyeglasses Goatee "
    "Gray_Hair Heavy_Makeup High_Cheekbones Male Mouth_Slightly_Open Mustache Narrow_Eyes No_Beard "
    "Oval_Face Pale_Skin Pointy_Nose Receding_Hairline Rosy_Cheeks Sideburns Smiling Straight_Hair "
    "Wavy_Hair Wearing_Earrings Wearing_Hat Wearing_Lipstick Wearing_Necklace Wearing_Necktie Young"
)
COUNT = 12


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A small copy of the format; gives its folder and the attributes written to it."""
    monkeypatch.setenv("FEDLIB_DATA", str(tmp_path))
    folder = tmp_path / "celeba"
    signs = np.random.default_rng(0).choice([-1, 1], (COUNT, 40))
    faces = np.zeros((COUNT, 218, 178, 3))
    reds = 10 * np.arange(COUNT)[:, None, None]
    faces[..., 0], faces[..., 1], faces[..., 2] = reds, 120, 250 - reds
    faces[:, :109, :, 1] = 30  # the upper half
    celeba_files(folder, ORDER, signs, [0] * 7 + [1] * 2 + [2] * 3, faces)
    return folder, (signs > 0).astype(np.uint8)


def test_splits_attributes_and_pictures(copy):
    _, written = copy
    found = {split: celeba.celeba(split) for split in celeba.SPLITS}
    assert [len(part.a) for part in found.values()] == [7, 2, 3]
    whole = torch.cat([part.a for part in found.values()])
    assert torch.equal(whole, torch.from_numpy(written))
    X = torch.cat([part.X for part in found.values()])
    assert X.shape == (COUNT, 3, 32, 32)
    assert X.dtype == torch.uint8
    red = X[:, 0].double().mean((1, 2))  # channels first, red first
    assert torch.allclose(red, 10.0 * torch.arange(COUNT, dtype=torch.float64), atol=3)
    assert (X[:, 1, :15] < 40).all()  # rows from the top
    assert (X[:, 1, 17:] > 110).all()


def test_limit_and_side(copy):
    assert copy
    few = celeba.celeba("train", limit=2, side=16)
    assert few.X.shape == (2, 3, 16, 16)
    assert torch.equal(few.a, celeba.celeba("train").a[:2])


def test_cells_are_the_eight_combinations(copy):
    _, written = copy
    part = celeba.celeba("train")
    place = [ORDER.split().index(n) for n in ("Attractive", "Male", "Mouth_Slightly_Open")]
    assert place == [2, 20, 21]  # as the sheet counts them
    assert part.cells.tolist() == (written[:7, place] @ [1, 2, 4]).tolist()


def test_groups_of_celeba_5_use_every_attribute_once(copy):
    assert copy
    groups = celeba.group_numbers(celeba.celeba("test").names)
    assert [len(group) for group in groups] == [8] * 5
    assert sorted(k for group in groups for k in group) == list(range(40))
    assert ORDER.split()[groups[3][5]] == "Male"


def test_scale_subtracts_the_means(copy):
    assert copy
    part = celeba.celeba("train", limit=1)
    means = torch.tensor([72.392, 82.909, 73.158]).view(3, 1, 1)
    assert torch.allclose(part.scale(part.X)[0], (part.X[0] - means) / 255, atol=1e-6)


def test_the_problem_of_five_groups(copy):
    assert copy
    train, test = celeba.celeba("train"), celeba.celeba("test")
    groups = celeba.group_numbers(train.names)
    problem = attributes(train, test, groups=groups, clients=3)
    assert (problem.dim, problem.num_objectives) == (11_189_352, 5)
    assert problem.rows.shape == (3, 2)
    values = problem.metrics(problem.w0, problem)
    assert len(values) == 12
    assert all(value.isfinite() for value in values.values())


def test_faults_are_one_sentence_that_says_what_to_do(copy):
    folder, _ = copy

    def fault(match):
        with pytest.raises(DataError, match=match) as caught:
            celeba.celeba("train")
        text = str(caught.value)
        assert text.count("\n") == 0
        assert "mmlab.ie.cuhk.edu.hk" in text
        assert "FEDLIB_DATA" in text

    picture = folder / "img_align_celeba/000003.jpg"
    picture.write_bytes(b"no picture")
    fault(r"000003\.jpg is not a picture that is there")
    picture.unlink()
    fault(r"000003\.jpg is not a picture that is there")
    lists = folder / "list_attr_celeba.txt"
    text = lists.read_text(encoding="utf-8")
    lists.write_text(text.replace("Young", "Old"), encoding="utf-8")
    fault("does not name the 40 attributes")
    lists.write_text(text.replace(" -1 ", " 0 ", 1), encoding="utf-8")
    fault("does not hold as many lines")
    lists.write_text("\n".join([str(COUNT - 1), *text.splitlines()[1:-1]]), encoding="utf-8")
    (folder / "list_eval_partition.txt").write_text("000012.jpg 0\n", encoding="utf-8")
    fault(r"lacks a line for 000012\.jpg")
    (folder / "list_eval_partition.txt").unlink()
    fault(r"list_eval_partition\.txt is not there")
    lists.unlink()
    fault(r"list_attr_celeba\.txt is not there")


def test_arguments(copy):
    assert copy
    refuses("celeba: split must be one of 'train'", celeba.celeba, "all")
    refuses("celeba: limit must be at least 1", celeba.celeba, "train", limit=0)


def test_a_user_s_own_copy():
    folder = Path(os.environ.get("FEDLIB_DATA", "/nowhere")) / "celeba"
    if not (folder / "list_attr_celeba.txt").exists():
        pytest.skip("CelebA is not in the data cache (its terms forbid passing it on)")
    part = celeba.celeba("train", limit=200)
    assert isinstance(part, Labelled)
    assert part.names == tuple(ORDER.split())
    assert part.X.float().mean() > 50
