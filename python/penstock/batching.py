# SPDX-License-Identifier: Apache-2.0
"""Transforms that make one element from several, or several from one."""

from . import expr, nest
from .windows import OneWindow, WindowedDataset, WindowsToFlatten


class Batching:
    """The part of Dataset that batches, splits and groups elements."""

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None, name=None):
        """Stacks `batch_size` elements into one."""
        return self._alike(self._core.batch(batch_size, drop_remainder))

    def ragged_batch(self, batch_size, drop_remainder=False, row_splits_dtype="int64", name=None):
        """Batches tensors whose shapes differ, as ragged tensors."""
        return self._alike(self._core.ragged_batch(batch_size, drop_remainder))

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False, name=None):
        """Batches tensors whose shapes differ, padded to the given shapes; None or -1 in a shape means the longest."""
        return self._alike(
            self._core.padded_batch(
                batch_size, self._shapes(padded_shapes), self._paddings(padding_values), drop_remainder
            )
        )

    def unbatch(self, name=None):
        """Produces the rows of each element, one after the other."""
        return self._alike(self._core.unbatch())

    def rebatch(self, batch_size, drop_remainder=False, name=None):
        """Produces batches of another size, or of several sizes in turn."""
        sizes = [batch_size] if isinstance(batch_size, int) else [int(size) for size in batch_size]
        return self._alike(self._core.rebatch(sizes, drop_remainder))

    def bucket_by_sequence_length(
        self,
        element_length_func,
        bucket_boundaries,
        bucket_batch_sizes,
        padded_shapes=None,
        padding_values=None,
        pad_to_bucket_boundary=False,
        no_padding=False,
        drop_remainder=False,
        name=None,
        max_age=None,
    ):
        """Batches elements of similar length, padded (ragged with `no_padding`)."""
        return self._alike(
            self._core.bucket_by_sequence_length(
                expr.traced(element_length_func, self._spec, []),
                list(bucket_boundaries),
                list(bucket_batch_sizes),
                self._shapes(padded_shapes),
                self._paddings(padding_values),
                pad_to_bucket_boundary,
                no_padding,
                drop_remainder,
                max_age,
            )
        )

    def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
        """Groups elements into windows of `size`, which may overlap. The result's methods turn windows into elements."""
        return WindowedDataset(self._core.window(size, shift, stride, drop_remainder), self)

    def group_by_window(self, key_func, reduce_func, window_size=None, window_size_func=None, name=None, max_age=None):
        """Groups elements with the same key into windows; reduce_func(key, window) makes a dataset of each window. The
        key passed to reduce_func is always None: only the window's elements are available."""
        if window_size is None:
            raise ValueError("group_by_window needs one window_size for all keys; window_size_func is not supported")
        core = self._core.group_by_window(expr.traced(key_func, self._spec, []), window_size, max_age)
        windows = WindowedDataset(core, self)
        whole = []

        def reduce(window):
            inner = reduce_func(None, window)
            whole.append(isinstance(inner, OneWindow))
            return inner.window if whole[-1] else inner

        flat = windows.flat_map_whole(reduce)
        return WindowsToFlatten(windows, reduce) if whole[0] else flat

    def rounds(self, num_consumers, bucket=None, cost=None, cost_spread=0.05, max_age=None):
        """Arranges elements in rounds for coordinated reads, each from one bucket or of similar cost. Must be the last
        node before `distribute`."""
        functions = [None if f is None else expr.traced(f, self._spec, []) for f in (bucket, cost)]
        return self._alike(self._core.rounds(num_consumers, *functions, cost_spread, max_age))

    def _named(self, nested, what, is_leaf):
        """Returns [(name of the leaf, value)] of a nest with one value for each leaf; a single value is used for all
        leaves."""
        names = self._core.leaf_names
        if nested is None:
            return []
        if is_leaf(nested):
            given = [nested] * len(names)
        else:
            given = nest.leaves_to(self._spec, nested, what)
        return [(name, value) for name, value in zip(names, given) if value is not None]

    def _shapes(self, shapes):
        if shapes is None:
            return []
        given = [shapes] if not nest.is_nest(self._spec) else nest.leaves_to(self._spec, shapes, "padded_shapes")
        return [
            (name, [-1 if dim is None else dim for dim in shape])
            for name, shape in zip(self._core.leaf_names, given)
            if shape is not None
        ]

    def _paddings(self, paddings):
        named = self._named(paddings, "padding_values", lambda value: not nest.is_nest(value))
        return [(name, value.item() if hasattr(value, "item") else value) for name, value in named]
