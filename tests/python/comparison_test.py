# SPDX-License-Identifier: Apache-2.0
"""Runs the pipelines of tests/dataplane/dataset/tensorflow, which were written for TensorFlow and run by it, with
penstock.tf under TensorFlow's name. Intended differences have no pipelines there; docs/datasets.md lists them."""
import pathlib
import sys
import unittest

import penstock.tf

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "dataplane" / "dataset" / "tensorflow"
sys.path.insert(0, str(FOLDER))
sys.modules["tensorflow"] = penstock.tf

from pipelines import PIPELINES  # noqa: E402
from text_of import lines_of, spec_text  # noqa: E402

UNKNOWN = f"cardinality={penstock.UNKNOWN_CARDINALITY}"


def stored():
    """Returns the lines of each pipeline by its name."""
    found = {}
    for line in (FOLDER / "expected.txt").read_text().split("\n")[1:-1]:
        if not line.startswith("  "):
            lines = found[line.split(" ")[0]] = []
        lines.append(line)
    return found


class Comparison(unittest.TestCase):
    maxDiff = None

    def test_each_gives_what_tensorflow_gave(self):
        expected = stored()
        for name, (make, any_order) in PIPELINES.items():
            with self.subTest(name):
                head, *elements = lines_of(name, make(), any_order)
                wanted, *rows = expected[name]
                self.assertEqual(elements, rows)
                # If TensorFlow knows the cardinality, it must be the same; otherwise ours may be known. TensorFlow
                # regards a finite choice among endless datasets as endless.
                if UNKNOWN not in wanted and name != "choose_documented":
                    self.assertEqual(head, wanted)

    def test_elements_are_of_the_same_dtypes_and_shapes(self):
        lines = (FOLDER / "specs.txt").read_text().split("\n")[1:-1]
        expected = dict(line.split(" ", 1) for line in lines)
        # Here the length of a bucket's batches is known if it is the same for all buckets.
        expected["bucket_by_sequence_length_drop_remainder"] = "int64[2, *]"
        for name, (make, _) in PIPELINES.items():
            with self.subTest(name):
                self.assertEqual(spec_text(make().element_spec), expected[name])

    def test_no_stored_result_is_left_out(self):
        self.assertEqual(sorted(stored()), sorted(PIPELINES))


if __name__ == "__main__":
    unittest.main()
