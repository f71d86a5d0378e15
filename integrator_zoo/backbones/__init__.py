"""Shared backbones: the same network under any integrator."""

from .convert import from_blocks
from .gpt import GPT
from .residual_stack import ResidualStack
from .resnet import ResNet

__all__ = ["GPT", "ResNet", "ResidualStack", "from_blocks"]
