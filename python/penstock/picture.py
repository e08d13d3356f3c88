# SPDX-License-Identifier: Apache-2.0
"""Pictures of a batch's images: `ps.show(batch)` shows all of them, and a notebook displays the result."""

import math
import os
import struct
import zlib

import numpy as np

from . import nest, tensor

BACKGROUND = 255  # white


class Picture:
    """A PNG, which a notebook displays. `png` has its bytes, and `pixels` the uint8 array [height, width, 3]."""

    def __init__(self, pixels):
        self.pixels = pixels

    @property
    def png(self):
        """The file's bytes."""
        height, width, _ = self.pixels.shape
        rows = np.zeros((height, 1 + 3 * width), dtype=np.uint8)  # each row begins with its filter, 0: none
        rows[:, 1:] = self.pixels.reshape(height, -1)
        header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits, RGB
        parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)

    def save(self, path):
        """Writes the file and returns the picture."""
        with open(os.fspath(path), "wb") as file:
            file.write(self.png)
        return self

    def _repr_png_(self):
        return self.png

    def __repr__(self):
        height, width, _ = self.pixels.shape
        return f"<penstock.Picture of {width} x {height} pixels>"


def show(batch, columns=None, limit=64, gap=2):
    """Returns a Picture of the first `limit` images of `batch`, as a grid that is filled row by row.

    batch: a tensor or array [n, height, width, channels], one image [height, width, channels], a list of images of any
    sizes, or an element with exactly one leaf that can be images. Images have 1 (grey), 3 (RGB) or 4 channels (with
    alpha, blended with white). Values are uint8, bool, or floats from 0 to 1. If floats are outside that range, all are
    scaled from the smallest to the largest value of the batch. columns: number of columns of the grid; None for a grid
    that is about square. gap: pixels between images. Raises ValueError, with the reason, if there are no images.
    """
    images = _images(batch)[:limit]
    if not images:
        raise ValueError("show: the batch contains no images")
    images = [_rgb(image) for image in _bytes(images)]
    columns = min(len(images), columns or math.ceil(math.sqrt(len(images))))
    height, width = (max(image.shape[axis] for image in images) for axis in (0, 1))
    rows = math.ceil(len(images) / columns)
    whole = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap, 3), BACKGROUND, dtype=np.uint8)
    for i, image in enumerate(images):
        top, left = i // columns * (height + gap), i % columns * (width + gap)
        whole[top : top + image.shape[0], left : left + image.shape[1]] = image
    return Picture(whole)


# --- Inside ------------------------------------------------------------------------------------


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _array(leaf):
    return tensor.array(leaf) if isinstance(leaf, tensor.Tensor) else np.asarray(leaf)


def _may_be_images(array):
    return array.ndim in (3, 4) and array.shape[-1] in (1, 3, 4) and array.dtype.kind in "bfu" and (
        array.dtype.kind != "u" or array.dtype == np.uint8
    )


def _images(batch):
    """Returns the images of a batch, each [height, width, channels]."""
    if isinstance(batch, list):
        return [image for member in batch for image in _images(member)]
    arrays = [_array(leaf) for leaf in nest.leaves(batch) if not hasattr(leaf, "nested_row_splits")]
    found = [array for array in arrays if _may_be_images(array)]
    if len(found) != 1:
        have = ", ".join(f"{array.dtype.name}{list(array.shape)}" for array in arrays)
        which = "none of" if not found else f"{len(found)} of"
        raise ValueError(
            f"show: {which} the batch's leaves ({have}) can be images; expected one: [n, height, width, channels] or "
            "[height, width, channels] of uint8, bool or floats, with 1, 3 or 4 channels. Pass the leaf to show"
        )
    return list(found[0]) if found[0].ndim == 4 else [found[0]]


def _bytes(images):
    """Returns the images as uint8."""
    if all(image.dtype.kind != "f" for image in images):
        return [image * np.uint8(255) if image.dtype.kind == "b" else image for image in images]
    images = [image / 255 if image.dtype == np.uint8 else image.astype(np.float64) for image in images]
    least = min((image.min() for image in images if image.size), default=0)
    largest = max((image.max() for image in images if image.size), default=1)
    if not (math.isfinite(least) and math.isfinite(largest)):
        raise ValueError("show: an image contains infinite or NaN values; its values must be finite")
    if least < 0 or largest > 1:
        images = [(image - least) / ((largest - least) or 1) for image in images]
    return [np.rint(image * 255).astype(np.uint8) for image in images]


def _rgb(image):
    if image.shape[-1] == 4:
        alpha = image[..., 3:].astype(np.float64) / 255
        return np.rint(image[..., :3] * alpha + BACKGROUND * (1 - alpha)).astype(np.uint8)
    return np.broadcast_to(image, (*image.shape[:2], 3))
