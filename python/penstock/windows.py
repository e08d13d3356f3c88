# SPDX-License-Identifier: Apache-2.0
"""Windows: what `window` and `group_by_window` give before they become elements."""

from . import expr, nest


class WindowedDataset:
    """Windows that are still to become elements: `dataset.window(5, shift=1).flat_map(lambda w: w.batch(5))`, or
    `.batch()`."""

    def __init__(self, core, of):
        self._core = core
        self._of = of

    def flat_map(self, map_func, name=None):
        """What map_func makes of each window, a dataset of its elements, one after the other. Of elements that are
        nests, a window is a nest of datasets, as tf.data's."""

        def parts(window):
            places = iter(range(len(nest.leaves(self._of.element_spec))))
            apart = nest.map_leaves(lambda _: _component(window, next(places)), self._of.element_spec)
            return map_func(*apart) if type(apart) is tuple else map_func(apart)

        return self.flat_map_whole(parts if nest.is_nest(self._of.element_spec) else map_func)

    def flat_map_whole(self, map_func):
        """The same with windows as datasets of the elements as they are."""
        result = []

        def call(window):
            with expr.tracing(map_func):
                inner = map_func(self._of._made(window, self._of.element_spec))
            if not isinstance(inner, type(self._of)):
                raise TypeError(f"the function of flat_map gives a dataset, not {type(inner).__name__}")
            result.append(inner.element_spec)
            return inner._core

        return self._of._made(self._core.flat_map(call), result[0])

    def batch(self):
        """Each window as one element: its elements stacked."""
        return self._of._alike(self._core.batch())

    def padded_batch(self, padded_shapes=None, padding_values=None):
        """The same, padded."""
        return self._of._alike(
            self._core.padded_batch(self._of._shapes(padded_shapes), self._of._paddings(padding_values))
        )

    def ragged_batch(self):
        """The same, as ragged tensors."""
        return self._of._alike(self._core.ragged_batch())


def _component(dataset, place):
    """Of each element the leaf of this number."""
    return dataset.map(lambda *members: nest.leaves(members)[place])


class OneWindow:
    """tf.data's dataset of one element which is a window: `lambda key, window: Dataset.from_tensors(window)`."""

    def __init__(self, window):
        self.window = window


class WindowsToFlatten:
    """What `group_by_window` gives then: `flat_map(lambda window: window)` stands behind it."""

    def __init__(self, windows, reduce):
        self._windows = windows
        self._reduce = reduce

    def flat_map(self, map_func, name=None):
        """What map_func makes of each window, one after the other."""
        return self._windows.flat_map_whole(lambda window: map_func(self._reduce(window)))
