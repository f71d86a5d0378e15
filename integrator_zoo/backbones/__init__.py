"""Shared backbones: the same network under any integrator."""

from .convert import from_blocks
from .residual_stack import ResidualStack
from .resnet import ResNet

__all__ = ["ResNet", "ResidualStack", "from_blocks"]
