# SPDX-License-Identifier: Apache-2.0
"""Reads a dataset, one element after the other, with a position that can be saved."""

from . import errors, leaving, nest, spec, tensor


default_seed = None  # seed of iterators without a seed of their own; None: a random one for each


class Iterator:
    """Yields the elements of a dataset: nests of Tensor on the element's own memory.

    Waiting does not hold the interpreter lock. An error takes the place of one element, and the next `next()`
    continues after it, unless the error says otherwise.
    """

    def __init__(self, dataset, seed=None, epoch=None, gpu=None):
        """`epoch`: the number of this epoch of the dataset; counted if not given. `gpu`: the number of a GPU to which
        elements are copied, the next two before they are requested. Only iterators with a `gpu` can restore their
        states."""
        self.element_spec = dataset.element_spec
        self._core = dataset._core.make_iterator(default_seed if seed is None else seed, epoch, gpu)
        self._pack = element_packer(self.element_spec)
        leaving.stop_at_exit(leaving.READERS, self)

    def __iter__(self):
        return self

    def __next__(self):
        leaves = self._core.next()
        if leaves is None:
            raise StopIteration
        return self._pack(leaves)

    def next(self, step=None, timeout=None):
        """Returns the next element; StopIteration at the end.

        `step`: checks that the data is at this step of the trainer, counted from 0 or from the restored state
        (errors.OutOfRangeError). `timeout`: seconds to wait; after errors.DeadlineExceededError no element is lost.
        """
        leaves = self._core.next(step, timeout)
        if leaves is None:
            raise StopIteration
        return self._pack(leaves)

    def get_next(self):
        """Same as `next`, but raises errors.OutOfRangeError at the end."""
        try:
            return next(self)
        except StopIteration:
            raise errors.OutOfRangeError("End of sequence") from None

    def save(self):
        """Returns the position after the last returned element, as bytes to store with the model. An iterator over an
        equal dataset that restores it continues with the next element."""
        return self._core.save()

    def restore(self, state):
        """Restores a saved position. Raises errors.InvalidArgumentError if it was saved for another dataset."""
        self._core.restore(state)

    def commit(self, state):
        """Declares a saved state durable: no reader gets the elements that it contains again."""
        self._core.commit(state)

    def stop(self, timeout=10.0):
        """Ends reading, from any thread; a waiting `next()` raises errors.CancelledError. Elements stay valid."""
        self._core.stop(timeout)

    def explain(self):
        """Returns the tree of the dataset, with the counts of each node so far."""
        return self._core.explain()


class NumpyIterator:
    """Yields the same elements as NumPy scalars, and as arrays on the elements' memory."""

    def __init__(self, iterator):
        if all(_is_of_numbers(leaf) for leaf in nest.leaves(iterator.element_spec)):
            self._next, self._pack = iterator._core.next_numpy, iterator._pack
        else:
            self._next, self._pack = iterator._core.next, lambda leaves: nest.map_leaves(_numpy, iterator._pack(leaves))
        self._iterator = iterator  # stopped when this object is destroyed

    def __iter__(self):
        return self

    def __next__(self):
        leaves = self._next()
        if leaves is None:
            raise StopIteration
        return self._pack(leaves)


def _is_of_numbers(leaf):
    return isinstance(leaf, spec.TensorSpec) and leaf.dtype.name != "string"


def _numpy(leaf):
    return leaf if leaf is None else tensor.numpy(leaf) if isinstance(leaf, tensor.Tensor) else leaf.numpy()


def element_packer(element_spec):
    """Returns a function from an element's leaves, as _core returns them, to the nest of `element_spec`."""
    pack = nest.packer(element_spec)
    leaf_specs = nest.leaves(element_spec)
    if not any(isinstance(leaf, (spec.RaggedTensorSpec, spec.SparseTensorSpec)) for leaf in leaf_specs):
        return pack
    return lambda leaves: pack([_of_parts(leaf, of) for leaf, of in zip(leaves, leaf_specs)])


def _of_parts(leaf, of):
    if leaf is None or isinstance(leaf, tensor.Tensor):
        return leaf
    if isinstance(of, spec.RaggedTensorSpec):
        return tensor.RaggedTensor(leaf[0], leaf[1:])
    values, indices, dense_shape = leaf
    rank = len(tensor.array(dense_shape))
    return tensor.SparseTensor(tensor.array(indices).reshape(-1, rank), values, dense_shape)
