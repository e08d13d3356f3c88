# SPDX-License-Identifier: Apache-2.0
"""Operations on images under their Python names. C++ tests compare their results with other libraries
(docs/images.md)."""
import unittest

import numpy as np

import penstock as ps

IMAGE = np.random.default_rng(3).integers(0, 256, (5, 6, 3), dtype=np.uint8)


def made(function, image=IMAGE):
    (result,) = ps.Dataset.from_tensors(image).map(function).as_numpy_iterator()
    return result.copy()


class Colours(unittest.TestCase):
    def test_brightness_is_a_factor(self):
        bright = made(lambda x: ps.ops.adjust_brightness(x, 2.0))
        np.testing.assert_array_equal(bright, np.minimum(IMAGE.astype(int) * 2, 255))

    def test_without_contrast_all_pixels_are_one(self):
        self.assertEqual(len(np.unique(made(lambda x: ps.ops.adjust_contrast(x, 0.0)))), 1)

    def test_without_saturation_it_is_grey(self):
        for grey in (
            made(lambda x: ps.ops.adjust_saturation(x, 0.0)),
            made(lambda x: ps.ops.random_grayscale(x, 1.0)),
        ):
            self.assertTrue((grey == grey[..., :1]).all())
            self.assertGreater(len(np.unique(grey)), 1)

    def test_half_a_turn_of_hue_makes_red_cyan(self):
        red = np.uint8([[[200, 0, 0]]])
        self.assertEqual(made(lambda x: ps.ops.adjust_hue(x, 0.5), red).tolist(), [[[0, 200, 200]]])

    def test_jitter_draws_within_its_bounds_and_from_the_seed(self):
        np.testing.assert_array_equal(made(lambda x: ps.ops.color_jitter(x)), IMAGE)
        grey = np.full((1, 1, 3), 100, np.uint8)
        ds = ps.Dataset.from_tensors(grey).repeat(50).map(lambda x: ps.ops.color_jitter(x, brightness=0.4))

        def drawn(seed):
            return [int(x[0, 0, 0]) for x in ds.iterator(seed=seed)]

        self.assertEqual(drawn(1), drawn(1))
        self.assertGreater(len(set(drawn(1))), 10)
        self.assertTrue(all(60 <= value <= 140 for value in drawn(1)), drawn(1))

    def test_a_bad_amount_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "hue"):
            made(lambda x: ps.ops.color_jitter(x, hue=0.7))


class Places(unittest.TestCase):
    def test_padding_around_and_after(self):
        around = made(lambda x: ps.ops.pad_to(x, 9, 8, value=7))
        np.testing.assert_array_equal(around[2:7, 1:7], IMAGE)
        self.assertTrue((around[:2] == 7).all())
        after = made(lambda x: ps.ops.pad_to(x, 9, 8, side=ps.ops.PadSide.AFTER))
        np.testing.assert_array_equal(after[:5, :6], IMAGE)

    def test_upside_down(self):
        np.testing.assert_array_equal(made(lambda x: ps.ops.random_flip_up_down(x, 1.0)), IMAGE[::-1])
        np.testing.assert_array_equal(made(lambda x: ps.ops.random_flip_up_down(x, 0.0)), IMAGE)


if __name__ == "__main__":
    unittest.main()
