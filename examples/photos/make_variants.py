#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes 200 crops and re-encodings of the two photographs, as JPEG files.

    make_variants.py FOLDER        needs Debian's python3-pil

The kind is in the name: 420, 444, progressive, grey, cmyk, rotated (by EXIF
only), truncated (cut at two thirds).
"""
import pathlib
import random
import sys

from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
KINDS = ["420", "444", "progressive", "grey", "cmyk", "rotated", "truncated"]


def variant(photo, kind, rng):
    """Returns (image, options of Image.save) for a random crop of `photo`, re-encoded as `kind`."""
    width, height = (rng.randint(160, side) for side in photo.size)
    left, top = rng.randint(0, photo.width - width), rng.randint(0, photo.height - height)
    image = photo.crop((left, top, left + width, top + height))
    options = {"quality": rng.randint(60, 95), "subsampling": 0 if kind == "444" else 2}
    if kind == "progressive":
        options["progressive"] = True
    elif kind == "grey":
        image = image.convert("L")
        del options["subsampling"]
    elif kind == "cmyk":
        image = image.convert("CMYK")
        del options["subsampling"]
    elif kind == "rotated":
        exif = Image.Exif()
        exif[0x0112] = rng.choice([3, 6, 8])  # orientation
        options["exif"] = exif
    return image, options


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(7)
    photos = [Image.open(HERE / name).convert("RGB") for name in ("china.jpg", "flower.jpg")]
    for i in range(200):
        kind = KINDS[i % len(KINDS)]
        image, options = variant(photos[i % 2], kind, rng)
        path = folder / f"{i:03d}-{kind}.jpg"
        image.save(path, "JPEG", **options)
        if kind == "truncated":
            data = path.read_bytes()
            path.write_bytes(data[:len(data) * 2 // 3])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
