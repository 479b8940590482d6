"""Torch modules as functions of one vector."""

from fedlib.models.modules import linear, mlp, ravel
from fedlib.models.pictures import picture_cnn

__all__ = ["linear", "mlp", "picture_cnn", "ravel"]
