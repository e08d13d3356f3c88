# SPDX-License-Identifier: Apache-2.0
"""tf.image: functions that behave as TensorFlow's. Functions of the same names in penstock.ops behave as torchvision's.
Here brightness is added, and contrast is relative to each channel's mean. Images are [height, width, channels]."""

import types

import numpy as np

from .. import ops
from ..dtypes import as_dtype
from ._operation import as_tensor, operation
from .io import decode_image, decode_jpeg, decode_png  # noqa: F401

ResizeMethod = types.SimpleNamespace(BILINEAR="bilinear", NEAREST_NEIGHBOR="nearest", BICUBIC="bicubic", AREA="area")


@operation
def resize(images, size, method="bilinear", preserve_aspect_ratio=False, antialias=False, name=None):
    """Resizes the image to this (height, width). The result is float32; method "nearest" keeps the dtype."""
    if preserve_aspect_ratio:
        raise NotImplementedError(
            "resize: preserve_aspect_ratio is not supported, because the output size is part of the dataset; pass the "
            "size that you need"
        )
    if method not in vars(ResizeMethod).values():
        raise ValueError(f"resize: unknown method {method!r}; known methods: {', '.join(vars(ResizeMethod).values())}")
    x = as_tensor(images)
    if method != "nearest":
        x = as_tensor(x, "float32")
    height, width = (int(side) for side in size)
    return ops.resize(x, height, width, getattr(ops.Interpolation, method.upper()), antialias)


@operation
def convert_image_dtype(image, dtype, saturate=False, name=None):
    """Converts between integers of their full range and floats of 0 to 1."""
    x, dtype = as_tensor(image), as_dtype(dtype)
    if x.dtype == dtype:
        return x
    if x.dtype.is_integer and dtype.is_floating:
        return ops.cast(x, dtype) * (1.0 / np.iinfo(x.dtype.name).max)
    if x.dtype.is_floating and dtype.is_integer:
        return ops.cast(x * (np.iinfo(dtype.name).max + 0.5), dtype)
    if x.dtype.is_floating and dtype.is_floating:
        return ops.cast(x, dtype)
    raise NotImplementedError(
        f"convert_image_dtype from {x.dtype} to {dtype} is not supported; it converts integers to floats, floats to "
        "integers, and between floats"
    )


@operation
def flip_left_right(image):
    """Mirrors the image."""
    return ops.flip_left_right(as_tensor(image))


@operation
def flip_up_down(image):
    """Turns the image upside down."""
    return ops.flip_up_down(as_tensor(image))


@operation
def random_flip_left_right(image, seed=None):
    """Mirrors the image half of the time."""
    return ops.random_flip(as_tensor(image))


@operation
def random_flip_up_down(image, seed=None):
    """Turns the image upside down half of the time."""
    return ops.random_flip_up_down(as_tensor(image))


@operation
def random_crop(value, size, seed=None, name=None):
    """Returns a random part of this (height, width, channels)."""
    height, width = (int(side) for side in size[:2])
    return ops.random_crop(as_tensor(value), height, width)


@operation
def crop_to_bounding_box(image, offset_height, offset_width, target_height, target_width):
    """Returns the part that begins at this offset and has this size."""
    return ops.crop(as_tensor(image), offset_height, offset_width, target_height, target_width)


@operation
def resize_with_crop_or_pad(image, target_height, target_width):
    """Crops the image around its centre, or pads it with zeros, to this size. Its height and width must be known."""
    x = as_tensor(image)
    height, width = _sides(x, "resize_with_crop_or_pad")
    top, left = max(0, (height - target_height) // 2), max(0, (width - target_width) // 2)
    x = ops.crop(x, top, left, min(height, target_height), min(width, target_width))
    above, before = max(0, (target_height - height) // 2), max(0, (target_width - width) // 2)
    below, behind = max(0, target_height - height - above), max(0, target_width - width - before)
    return ops.pad(x, [(above, below), (before, behind), (0, 0)])


@operation
def central_crop(image, central_fraction):
    """Returns the centre of the image, with this fraction of its height and width, which must be known."""
    x = as_tensor(image)
    height, width = _sides(x, "central_crop")
    top, left = (int((side - side * central_fraction) / 2) for side in (height, width))
    return ops.crop(x, top, left, height - 2 * top, width - 2 * left)


@operation
def adjust_brightness(image, delta):
    """Adds delta, a fraction of the full range."""
    return _in_floats(image, lambda x: x + as_tensor(delta, x.dtype))


@operation
def adjust_contrast(images, contrast_factor):
    """Multiplies each value's distance from the mean of its channel by this factor."""

    def stretched(x):
        mean = ops.reduce_mean(x, (-3, -2), True)
        return (x - mean) * as_tensor(contrast_factor, x.dtype) + mean

    return _in_floats(images, stretched)


@operation
def random_brightness(image, max_delta, seed=None):
    """Applies adjust_brightness with a random delta from -max_delta to max_delta."""
    return adjust_brightness(image, _drawn(-max_delta, max_delta))


@operation
def random_contrast(image, lower, upper, seed=None):
    """Applies adjust_contrast with a random factor from lower to upper."""
    return adjust_contrast(image, _drawn(lower, upper))


@operation
def per_image_standardization(image):
    """Scales the image to mean 0 and deviation 1. The noise of a nearly uniform image is not amplified."""
    x = as_tensor(image, "float32")
    mean = ops.reduce_mean(x)
    variance = ops.reduce_mean(x * x) - mean * mean
    count = ops.cast(ops.size(x), as_dtype("float32"))
    return (x - mean) / ops.maximum(ops.sqrt(ops.maximum(variance, 0.0)), 1.0 / ops.sqrt(count))


@operation
def rgb_to_grayscale(images, name=None):
    """Returns one channel: 0.2989 R + 0.5870 G + 0.1140 B."""
    weights = np.array([[0.2989], [0.5870], [0.1140]], np.float32)
    return _in_floats(images, lambda x: ops.matmul(x, weights))


@operation
def grayscale_to_rgb(images, name=None):
    """Repeats the grey channel three times."""
    return ops.concat([as_tensor(images)] * 3, -1)


def _in_floats(image, function):
    """Applies a function to the image as float32, and converts the result to the image's dtype."""
    x = as_tensor(image)
    if x.dtype.is_floating:
        return function(x)
    changed = function(convert_image_dtype(x, "float32"))
    return convert_image_dtype(ops.clip(changed, 0.0, 1.0), x.dtype)


def _drawn(low, high):
    return ops.random_uniform([], as_tensor(low, "float32"), as_tensor(high, "float32"))


def _sides(x, what):
    if x.shape is None or None in x.shape[-3:-1]:
        raise ValueError(f"{what}: the height and width of the image are unknown at this point; resize it first")
    return x.shape[-3:-1]
