# SPDX-License-Identifier: Apache-2.0
"""Windows: the result of `window` and `group_by_window` before they become elements."""

from . import expr, nest


class WindowedDataset:
    """Windows that are not elements yet: `dataset.window(5, shift=1).flat_map(lambda w: w.batch(5))`, or `.batch()`."""

    def __init__(self, core, of):
        self._core = core
        self._of = of

    def flat_map(self, map_func, name=None):
        """Produces the elements of the dataset that map_func returns for each window, one window after the other. If
        elements are nests, a window is a nest of datasets, as in tf.data."""

        def parts(window):
            places = iter(range(len(nest.leaves(self._of.element_spec))))
            apart = nest.map_leaves(lambda _: _component(window, next(places)), self._of.element_spec)
            return map_func(*apart) if type(apart) is tuple else map_func(apart)

        return self.flat_map_whole(parts if nest.is_nest(self._of.element_spec) else map_func)

    def flat_map_whole(self, map_func):
        """Same as `flat_map`, but a window is always one dataset, even if elements are nests."""
        result = []

        def call(window):
            with expr.tracing(map_func):
                inner = map_func(self._of._made(window, self._of.element_spec))
            if not isinstance(inner, type(self._of)):
                raise TypeError(f"the function of flat_map must return a dataset, not {type(inner).__name__}")
            result.append(inner.element_spec)
            return inner._core

        return self._of._made(self._core.flat_map(call), result[0])

    def batch(self):
        """Stacks the elements of each window into one element."""
        return self._of._alike(self._core.batch())

    def padded_batch(self, padded_shapes=None, padding_values=None):
        """Same as `batch`, but pads the elements."""
        return self._of._alike(
            self._core.padded_batch(self._of._shapes(padded_shapes), self._of._paddings(padding_values))
        )

    def ragged_batch(self):
        """Same as `batch`, but makes ragged tensors."""
        return self._of._alike(self._core.ragged_batch())


def _component(dataset, place):
    """Returns a dataset of one leaf of each element, given by its number."""
    return dataset.map(lambda *members: nest.leaves(members)[place])


class OneWindow:
    """A dataset whose only element is a window, as in tf.data: `lambda key, window: Dataset.from_tensors(window)`."""

    def __init__(self, window):
        self.window = window


class WindowsToFlatten:
    """The result of `group_by_window` if `flat_map(lambda window: window)` follows it."""

    def __init__(self, windows, reduce):
        self._windows = windows
        self._reduce = reduce

    def flat_map(self, map_func, name=None):
        """Produces the elements that map_func makes from each window, one window after the other."""
        return self._windows.flat_map_whole(lambda window: map_func(self._reduce(window)))
