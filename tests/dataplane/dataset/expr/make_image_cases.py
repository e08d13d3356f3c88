# SPDX-License-Identifier: Apache-2.0
"""Writes image_cases.txt: the results of other libraries on images, for numpy_cases_test.cc to compare.

    python3 -m venv env && env/bin/pip install tensorflow-cpu pillow opencv-python-headless
    env/bin/python make_image_cases.py > image_cases.txt

Cases as in numpy_cases.txt; "+-" precedes the allowed difference of values, and
"by" the library. Differences arise because Pillow and OpenCV compute uint8 with
fixed-point weights and round between the two passes; TensorFlow takes the weights
of bicubic without antialias from a table of 1,024 steps.
"""
import colorsys
import io

import cv2
import numpy as np
import tensorflow as tf
from PIL import Image, ImageEnhance, ImageOps
from PIL import __version__ as pillow_version

import make_numpy_cases

rng = np.random.default_rng(20240608)
MODES = {"nearest": 0, "bilinear": 1, "bicubic": 2, "area": 3}
SIZES = [((3, 4), (6, 5)), ((7, 5), (3, 3)), ((8, 9), (3, 7)), ((2, 3), (2, 3)), ((1, 1), (2, 3)),
         ((13, 11), (3, 2)), ((4, 9), (7, 4))]


def text(a):
    """Writes a float32 with the fewest digits that identify it: shorter than hexadecimal."""
    a = np.asarray(a)
    if a.dtype != "float32":
        return make_numpy_cases.text(a)
    dims = "[" + ",".join(map(str, a.shape)) + "]"
    return " ".join(["float32", dims] + [np.format_float_positional(v, trim="-") for v in a.ravel()])


def case(op, inputs, result, by, within=0.0, **attrs):
    attr = " ".join(f"{k}={','.join(map(str, v)) if isinstance(v, (list, tuple)) else v}" for k, v in attrs.items())
    print(" ; ".join([f"{op} {attr}".strip()] + [text(i) for i in inputs]), "=>", text(result), "+-", within, "by", by)


def pixels(*shape):
    """Returns a smooth image with some noise, from black to white."""
    y, x, c = np.meshgrid(*map(np.arange, shape), indexing="ij")
    wave = 127 + 90 * np.sin(0.9 * x + c) + 60 * np.cos(0.7 * y - c) + rng.integers(-40, 40, shape)
    return np.clip(wave, 0, 255).astype("uint8")


def bilinear(image, height, width):
    def sources(to, size):
        at = (np.arange(to) + 0.5) * size / to - 0.5
        lower = np.clip(np.floor(at), 0, size - 1).astype(int)
        upper = np.clip(np.ceil(at), 0, size - 1).astype(int)
        return lower, upper, at - np.floor(at)

    a = image.astype("float64")
    lower, upper, w = sources(height, a.shape[0])
    a = a[lower] + (a[upper] - a[lower]) * w[:, None, None]
    lower, upper, w = sources(width, a.shape[1])
    return a[:, lower] + (a[:, upper] - a[:, lower]) * w[None, :, None]


def resize_cases():
    for channels, sizes in ((3, SIZES), (1, SIZES[2:3]), (4, SIZES[1:2])):
        for shape, to in sizes:
            size = {"height": to[0], "width": to[1]}
            b = pixels(*shape, channels)
            a = np.round(b / 255, 2).astype("float32")
            plain = {"interpolation": 1, "antialias": 0}
            case("Resize", [a], bilinear(a, *to).astype("float32"), "NumPy", 1e-6, **size, **plain)
            exact = bilinear(b, *to)
            between = (abs(exact % 1 - 0.5) < 1e-4).any()  # a half, which float32 may round either way
            case("Resize", [b], np.floor(exact + 0.5).astype("uint8"), "NumPy", int(between), **size, **plain)
            if channels == 4:
                continue
            for mode, number in MODES.items():
                for antialias in (False, True) if mode in ("bilinear", "bicubic") else (False,):
                    result = tf.image.resize(a, to, method=mode, antialias=antialias).numpy().astype("float32")
                    within = 1e-3 if mode == "bicubic" and not antialias else 2e-6
                    case("Resize", [a], result, "TensorFlow", within, **size, interpolation=number,
                         antialias=int(antialias))
            if channels == 1:
                continue
            image = Image.fromarray(b)
            for mode, filter in (("bilinear", Image.Resampling.BILINEAR), ("bicubic", Image.Resampling.BICUBIC)):
                result = np.asarray(image.resize(to[::-1], filter))
                case("Resize", [b], result, "Pillow", 1, **size, interpolation=MODES[mode], antialias=1)
            shrinks = to[0] <= shape[0] and to[1] <= shape[1]
            for mode, flag in (("bilinear", cv2.INTER_LINEAR), ("area", cv2.INTER_AREA)):
                if mode == "area" and not shrinks:
                    continue
                result = cv2.resize(b, to[::-1], interpolation=flag)
                case("Resize", [b], result, "OpenCV", 1, **size, interpolation=MODES[mode], antialias=0)


def move_cases():
    a = pixels(6, 7, 3)
    for x in (a, a[..., :1].astype("int64"), a[..., 1:].astype("float16")):
        case("CenterCrop", [x], x[1:4, 1:5], "NumPy", height=3, width=4)
        case("Crop", [x], x[2:6, 3:5], "NumPy", top=2, left=3, height=4, width=2)
        case("FlipLeftRight", [x], x[:, ::-1], "NumPy")
        case("FlipUpDown", [x], x[::-1], "NumPy")
        case("PadTo", [x], np.pad(x, ((1, 2), (1, 1), (0, 0)), constant_values=7), "NumPy", height=9, width=9,
             value=7, side=0)
        case("PadTo", [x], np.pad(x, ((0, 3), (0, 2), (0, 0))), "NumPy", height=9, width=9, value=0, side=1)


def hue(rgb, delta):
    def turned(p):
        h, s, v = colorsys.rgb_to_hsv(*p)
        return colorsys.hsv_to_rgb((h + delta) % 1, s, v)

    return np.apply_along_axis(turned, 2, rgb.astype("float64"))


def color_cases():
    b = pixels(6, 7, 3)
    b[0, 0], b[0, 1], b[0, 2] = 0, 255, 90
    image = Image.fromarray(b)
    for factor in (0, 0.3, 1, 1.7):
        for name in ("Brightness", "Contrast", "Color"):
            result = np.asarray(getattr(ImageEnhance, name)(image).enhance(factor))
            op = "AdjustSaturation" if name == "Color" else f"Adjust{name}"
            # Pillow rounds the mean of the grey picture, and truncates the blended values.
            case(op, [b], result, "Pillow", 2, factor=factor)
    a = np.round(b / 255, 2).astype("float32")
    grey = a @ np.array([0.299, 0.587, 0.114])
    for factor in (0, 0.3, 1.7):
        for op, other in (("Brightness", 0), ("Contrast", grey.mean()), ("Saturation", grey[..., None])):
            result = np.clip(factor * a + (1 - factor) * other, 0, 1).astype("float32")
            case(f"Adjust{op}", [a], result, "NumPy", 1e-6, factor=factor)
    for delta in (-0.5, -0.2, 0, 0.1, 0.35):
        case("AdjustHue", [a], hue(a, delta).astype("float32"), "colorsys", 1e-5, delta=delta)
        case("AdjustHue", [b], np.floor(hue(b / 255, delta) * 255 + 0.5).astype("uint8"), "colorsys", 1, delta=delta)
    mean, std = np.array([123.5, 116, 103], "float32"), np.array([58, 57, 57.5], "float32")
    for x in (b, b.astype("float32")):
        case("Normalize", [x], (x.astype("float32") - mean) / std, "NumPy", 1e-6, mean=mean.tolist(), std=std.tolist())


def file_of(image, format, **options):
    out = io.BytesIO()
    image.save(out, format, **options)
    return np.array(out.getvalue(), dtype=object)


def png(bytes, result, by="Pillow", within=0.0, channels=3, dtype="uint8", upright=0):
    case("DecodePngImage", [bytes], result, by, within, channels=channels, dtype=dtype, upright=upright)


def png_cases():
    rgba = pixels(4, 5, 4)
    images = [Image.fromarray(rgba), Image.fromarray(rgba[..., :3]), Image.fromarray(rgba[..., 0]),
              Image.fromarray(rgba[..., 0]).convert("LA"), Image.fromarray(rgba[..., 0]).convert("1"),
              Image.fromarray(rgba[..., :3]).quantize(7), Image.fromarray(rgba[..., :3]).quantize(60)]
    for image in images:
        file = file_of(image, "PNG")
        alpha = image.convert("RGBA")
        png(file, np.asarray(alpha), channels=4)
        png(file, np.asarray(alpha)[..., :3])
        # Pillow's colour weights have fewer digits.
        grey = np.asarray(alpha.convert("RGB").convert("L"))[..., None]
        png(file, grey, channels=1, within=1)
        png(file, np.concatenate([grey, np.asarray(alpha)[..., 3:]], 2), channels=2, within=1)
        png(file, np.asarray(alpha).astype("uint16") * 257, channels=4, dtype="uint16")
    transparent = file_of(images[5], "PNG", transparency=bytes([0, 10, 255]))
    png(transparent, np.asarray(Image.open(io.BytesIO(transparent.item())).convert("RGBA")), channels=4)
    deep = rng.integers(0, 65536, (3, 5, 3)).astype("uint16")
    deep_file = np.array(cv2.imencode(".png", deep[..., ::-1])[1].tobytes(), dtype=object)
    png(deep_file, deep, by="OpenCV", dtype="uint16")
    png(deep_file, (deep >> 8).astype("uint8"), by="OpenCV")
    for c, file in ((3, deep_file), (1, file_of(images[2], "PNG")), (4, file_of(images[0], "PNG"))):
        png(file, tf.io.decode_png(file.item(), channels=c).numpy(), by="TensorFlow", channels=c)


def orientation_cases():
    image = Image.fromarray(pixels(3, 5, 3))
    for value in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = value
        for format, op, options in (("PNG", "DecodePngImage", {}), ("JPEG", "DecodeJpegImage", {"quality": 95})):
            file = file_of(image, format, exif=exif, **options)
            stored = Image.open(io.BytesIO(file.item()))
            turned = ImageOps.exif_transpose(stored)
            attrs = {"dtype": "uint8"} if format == "PNG" else {"scaling": 0}
            case(op, [file], np.asarray(turned), "Pillow", 1 if format == "JPEG" else 0, channels=3, upright=1, **attrs)
            case("DecodeImage", [file], np.asarray(turned), "Pillow", 1, channels=3, upright=1, scaling=0)
            if value == 6:
                case(op, [file], np.asarray(stored), "Pillow", 1 if format == "JPEG" else 0, channels=3, upright=0, **attrs)


print(f"# Made by make_image_cases.py with NumPy {np.__version__}, TensorFlow {tf.__version__}, "
      f"Pillow {pillow_version}, OpenCV {cv2.__version__}")
for group in (resize_cases, move_cases, color_cases, png_cases, orientation_cases):
    group()
