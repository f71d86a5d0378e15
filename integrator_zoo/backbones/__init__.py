"""Shared backbones: the same network under any integrator."""

from .residual_stack import ResidualStack
from .resnet import ResNet

__all__ = ["ResNet", "ResidualStack"]
