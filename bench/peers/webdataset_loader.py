# SPDX-License-Identifier: Apache-2.0
"""WebDataset: images from a tar file, prepared with torchvision as in torch_dataloader.py."""
from __future__ import annotations

import importlib.metadata
import os
import sys
import tarfile

import torch
import webdataset

import measure
import prepared
import torch_images
import wire

SAMPLES = 1024  # in the tar file. The images repeat in it, so that it is seldom reopened.


def write_tar(setup: wire.Setup) -> str:
    names = prepared.files(setup, "jpg")
    path = os.path.join(setup.scratch, "images.tar")
    with tarfile.open(path, "w") as tar:
        for number in range(SAMPLES):
            tar.add(names[number % len(names)], f"{number:06}.jpg")
    return path


def prepare(sample: dict[str, bytes | str]) -> tuple[int, torch.Tensor]:
    jpeg = torch.frombuffer(bytearray(sample["jpg"]), dtype=torch.uint8)
    return int(sample["__key__"]), torch_images.prepare(jpeg)


def start(setup: wire.Setup) -> wire.Peer:
    setup.only(*prepared.OF_IMAGES)
    dataset = webdataset.WebDataset([write_tar(setup)], shardshuffle=False, empty_check=False).repeat().map(
        prepare).batched(prepared.IMAGES, partial=False)
    iterator = iter(webdataset.WebLoader(dataset, batch_size=None, num_workers=setup.workers))
    reader = prepared.Images(SAMPLES)
    reader.read(next(iterator))
    return wire.Peer(
        pids={"worker": measure.children(os.getpid()), "consumer": [os.getpid()]},
        about={"system": "webdataset", "version": importlib.metadata.version("webdataset"), "protocol": "shm_file",
               "compression": "none", "variant": "",
               "settings": {"torch": torch.__version__, "touch": setup.touch, **torch_images.ABOUT}},
        next=iterator.__next__, read=reader.read)


if __name__ == "__main__":
    sys.exit(wire.serve(start))
