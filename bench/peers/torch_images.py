# SPDX-License-Identifier: Apache-2.0
"""I1's images by torchvision: what the loaders of torch have in common."""
from __future__ import annotations

import torch
import torchvision
from torchvision.transforms import RandomResizedCrop
from torchvision.transforms.v2 import functional

import prepared

ABOUT = {"torchvision": torchvision.__version__, "antialias": False}


def prepare(jpeg: torch.Tensor) -> torch.Tensor:
    """The bytes of a file to an image [3, 224, 224], a random region of it, mirrored half of the time."""
    image = torchvision.io.decode_jpeg(jpeg, torchvision.io.ImageReadMode.RGB)
    region = RandomResizedCrop.get_params(image, list(prepared.AREA), list(prepared.ASPECT))
    image = functional.resized_crop(image, *region, [prepared.SIDE, prepared.SIDE], antialias=False)
    return functional.horizontal_flip(image) if torch.rand(()) < 0.5 else image
