# SPDX-License-Identifier: Apache-2.0
"""I1's images, prepared with torchvision for torch_dataloader.py and webdataset_loader.py."""
from __future__ import annotations

import torch
import torchvision
from torchvision.transforms import RandomResizedCrop
from torchvision.transforms.v2 import functional

import prepared

ABOUT = {"torchvision": torchvision.__version__, "antialias": False}


def prepare(jpeg: torch.Tensor) -> torch.Tensor:
    """Decodes a file's bytes and resizes a random region to [3, 224, 224], mirrored half of the time."""
    image = torchvision.io.decode_jpeg(jpeg, torchvision.io.ImageReadMode.RGB)
    region = RandomResizedCrop.get_params(image, list(prepared.AREA), list(prepared.ASPECT))
    image = functional.resized_crop(image, *region, [prepared.SIDE, prepared.SIDE], antialias=False)
    return functional.horizontal_flip(image) if torch.rand(()) < 0.5 else image
