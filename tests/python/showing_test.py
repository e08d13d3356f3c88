# SPDX-License-Identifier: Apache-2.0
"""Pictures of batches, and the progress of reading."""
import io
import pathlib
import re
import tempfile
import unittest
from unittest import mock

import numpy as np

import penstock as ps

GRID = pathlib.Path(__file__).parent / "show_grid.png"


def images(count, height=6, width=8):
    """Returns different ramps of colours."""
    ramp = np.arange(height * width * 3, dtype=np.int64).reshape(height, width, 3)
    return np.stack([ramp * (i + 1) * 37 % 256 for i in range(count)]).astype(np.uint8)


def decoded(png):
    """Decodes with the engine's libpng."""
    (pixels,) = ps.Dataset.from_tensors(png).map(lambda x: ps.ops.decode_png(x)).as_numpy_iterator()
    return pixels.copy()


class Pictures(unittest.TestCase):
    def test_a_batch_is_shown_as_the_stored_grid(self):
        batch = next(iter(ps.Dataset.from_tensor_slices({"image": images(5), "label": np.arange(5)}).batch(5)))
        np.testing.assert_array_equal(decoded(ps.show(batch).png), decoded(GRID.read_bytes()))

    def test_each_image_stands_in_its_place(self):
        of = images(5)
        pixels = ps.show(of, columns=2, gap=1).pixels
        self.assertEqual(pixels.shape, (3 * 7 - 1, 2 * 9 - 1, 3))
        np.testing.assert_array_equal(pixels[7:13, 9:17], of[3])
        self.assertTrue((pixels[6] == 255).all() and (pixels[14:, 9:] == 255).all())

    def test_a_notebook_and_a_file_have_the_same_bytes(self):
        picture = ps.show(images(1)[0])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "picture.png")
            self.assertIs(picture.save(path), picture)
            self.assertEqual(path.read_bytes(), picture._repr_png_())
        np.testing.assert_array_equal(decoded(picture.png), images(1)[0])

    def test_what_may_be_an_image(self):
        grey = np.array([[[0], [128]]], np.uint8)
        self.assertEqual(ps.show(grey).pixels.tolist(), [[[0] * 3, [128] * 3]])
        self.assertEqual(ps.show(grey > 0).pixels.tolist(), [[[0] * 3, [255] * 3]])
        self.assertEqual(ps.show(np.float32([[[0], [0.2], [1]]])).pixels[0, :, 0].tolist(), [0, 51, 255])
        self.assertEqual(ps.show(np.float32([[[-2], [0], [2]]])).pixels[0, :, 0].tolist(), [0, 128, 255])
        self.assertEqual(ps.show(np.uint8([[[10, 20, 30, 0], [10, 20, 30, 255]]])).pixels.tolist(),
                         [[[255] * 3, [10, 20, 30]]])

    def test_a_list_of_images_of_any_size(self):
        pixels = ps.show([images(1, 2, 3)[0], images(1, 4, 1)[0]], gap=0).pixels
        self.assertEqual(pixels.shape, (4, 6, 3))
        np.testing.assert_array_equal(pixels[:, 3:4], images(1, 4, 1)[0])

    def test_so_many_at_most(self):
        self.assertEqual(ps.show(images(9), columns=9, limit=3, gap=0).pixels.shape, (6, 24, 3))

    def test_data_that_is_no_image_is_an_error(self):
        with self.assertRaisesRegex(ValueError, r"none of the batch's leaves \(int64\[3\]\)"):
            ps.show({"label": np.arange(3)})
        with self.assertRaisesRegex(ValueError, "2 of the batch's leaves .* Pass the leaf to show"):
            ps.show((images(1), images(1)))
        with self.assertRaisesRegex(ValueError, "no image"):
            ps.show(images(1)[:0])
        with self.assertRaisesRegex(ValueError, "infinite or NaN"):
            ps.show(np.full((1, 1, 1), np.nan))


class Progress(unittest.TestCase):
    def setUp(self):
        without_tqdm = mock.patch.dict("sys.modules", {"tqdm": None, "tqdm.auto": None})
        without_tqdm.start()
        self.addCleanup(without_tqdm.stop)

    def test_the_elements_and_a_line_at_the_end(self):
        file = io.StringIO()
        elements = [int(x) for x in ps.progress(ps.Dataset.range(7), desc="pass 1", file=file)]
        self.assertEqual(elements, list(range(7)))
        self.assertRegex(file.getvalue(), r"\Apass 1: 7 of 7 elements, [0-9.]+/s\n\Z")

    def test_the_total_may_be_unknown_or_given(self):
        odd = ps.Dataset.range(10).filter(lambda x: x % 2 == 1)
        for total, text in ((None, "5 elements"), (5, "5 of 5 elements")):
            file = io.StringIO()
            self.assertEqual(len(list(ps.progress(odd, total=total, file=file))), 5)
            self.assertIn(text, file.getvalue())

    def test_a_terminal_sees_one_line(self):
        file = io.StringIO()
        file.isatty = lambda: True
        with mock.patch("time.monotonic", side_effect=iter(range(100))):
            list(ps.progress(ps.Dataset.range(3), file=file))
        self.assertEqual(re.findall(r"(\d) of 3", file.getvalue()), ["1", "2", "3", "3"])
        self.assertEqual(file.getvalue().count("\n"), 1)

    def test_reading_goes_on_after_an_error(self):
        ds = ps.Dataset.from_tensor_slices(["1", "x", "3"]).map(lambda x: ps.ops.string_to_number(x, "int64"))
        iterator = ps.progress(ds, file=io.StringIO())
        self.assertEqual(int(next(iterator)), 1)
        with self.assertRaises(ps.errors.InvalidArgumentError):
            next(iterator)
        self.assertEqual(int(next(iterator)), 3)

    def test_tqdm_is_used_if_available(self):
        made = []

        class Tqdm:
            def __init__(self, **arguments):
                self.said, self.count, self.closed = arguments, 0, False
                made.append(self)

            def update(self, count):
                self.count += count

            def close(self):
                self.closed = True

        with mock.patch.dict("sys.modules", {"tqdm": mock.Mock(), "tqdm.auto": mock.Mock(tqdm=Tqdm)}):
            list(ps.progress(ps.Dataset.range(4), desc="pass"))
        (bar,) = made
        self.assertEqual((bar.count, bar.closed, bar.said["total"], bar.said["desc"]), (4, True, 4, "pass"))


if __name__ == "__main__":
    unittest.main()
