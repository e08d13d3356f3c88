# SPDX-License-Identifier: Apache-2.0
"""The base of the loaders for all frameworks: passes over a dataset, and a position that can be saved."""

import collections

from . import dataset as datasets
from . import iterator as iterators
from . import nest, spec

_KEY = "penstock"  # key in a state_dict()


class Loader:
    """Yields the elements of a dataset, with leaves that `_leaf` makes from Tensors.

    Each iter() is a pass; the position is that of the latest pass.
    """

    def __init__(self, dataset, *, seed=None, commit=None):
        super().__init__()
        if not isinstance(dataset, datasets.Dataset):
            raise TypeError(f"dataset must be a penstock.Dataset, not {type(dataset).__name__}")
        if commit not in (None, "previous"):
            raise ValueError(f"commit must be None or 'previous', not {commit!r}")
        self.dataset = dataset
        self._seed = seed
        self._commits_previous = commit == "previous"
        self._gpu = None  # the iterator's `gpu`
        self._taken = collections.deque()  # states that wait to be committed
        self._iterator = None
        self._restored = None  # the next iter() restores it

    def __iter__(self):
        self._begin()
        return _Elements(self._iterator, self._leaves)

    def __len__(self):
        elements = self.dataset.cardinality()
        if elements < 0:
            raise TypeError(f"{type(self).__name__} has no length: the dataset is infinite or of unknown length")
        return int(elements)

    def state_dict(self):
        """Returns the position after the last returned element, to store with the model: a dict with one bytes object."""
        state = state_of(self._position())
        if self._commits_previous and self._iterator is not None:
            self._taken.append(state)
            if len(self._taken) > 2:
                self.commit(self._taken.popleft())
        return state

    def load_state_dict(self, state):
        """Makes the next iter() continue after `state`."""
        self._restored = position_of(state)
        self._iterator = None
        self._taken.clear()

    def commit(self, state):
        """Declares a state of this loader durable: no reader gets the elements that it contains again."""
        if self._iterator is None:
            raise RuntimeError("nothing was read yet; commit a state with the loader that continues after it")
        self._iterator.commit(position_of(state))

    def step_token(self):
        """Returns (round, consumer, steps, hash) of the last returned element. All ranks that are at the same round of
        the same read have the same hash. Without rounds, round and consumer are -1, and the hash is that of the number
        of elements returned since the pass began or was restored."""
        if self._iterator is None:
            raise RuntimeError("nothing was read yet; step_token() describes the last element read")
        return self._iterator._core.step_token()

    def stop(self):
        """Ends reading."""
        if self._iterator is not None:
            self._iterator.stop()

    def _leaves(self, leaves):
        """Returns all leaves of an element, converted, in order. A leaf that the element leaves out is None."""
        return [None if leaf is None else self._leaf(leaf) for leaf in leaves]

    def _leaf(self, leaf):
        raise NotImplementedError

    def _begin(self):
        self._iterator = iterators.Iterator(self.dataset, self._seed, gpu=self._gpu)
        self._taken.clear()
        if self._restored is not None:
            self._iterator.restore(self._restored)
            self._restored = None

    def _position(self):
        if self._restored is not None:
            return self._restored
        if self._iterator is None:
            # A position belongs to a pass, so this begins one. The next iter() continues it.
            self._begin()
            self._restored = self._iterator.save()
            return self._restored
        return self._iterator.save()


def state_of(position):
    """Returns the state_dict() of a position, which is bytes."""
    return {_KEY: position}


def position_of(state):
    """Returns the position in a state_dict(). Raises ValueError if it is not a loader's state."""
    try:
        return bytes(state[_KEY])
    except (KeyError, TypeError) as error:
        raise ValueError("this is not the state_dict() of a Penstock loader") from error


def refuse_parts(dataset, framework):
    """Raises TypeError if a leaf of the dataset's elements has several parts, for which `framework` has no array."""
    for name, leaf in nest.named_leaves(dataset.element_spec):
        if isinstance(leaf, (spec.RaggedTensorSpec, spec.SparseTensorSpec)):
            raise TypeError(
                f"element{name}: {leaf} is not a single array in {framework}; make it dense first (padded_batch, or a "
                "map), or iterate over the dataset itself, whose elements have the parts"
            )


def refuse_strings(dataset, framework):
    """Raises TypeError if a leaf of the dataset's elements has strings, which `framework` does not have."""
    for name, leaf in nest.named_leaves(dataset.element_spec):
        if leaf.dtype.name == "string":
            raise TypeError(
                f"element{name}: {framework} has no strings; in a map, drop them or convert them to numbers "
                "(ps.ops.string_to_number, string_to_hash_bucket), or iterate over the dataset itself"
            )


class _Elements:
    def __init__(self, iterator, convert):
        self._iterator = iterator
        self._core = iterator._core
        self._convert = convert
        self._pack = iterators.element_packer(iterator.element_spec)

    def __iter__(self):
        return self

    def __next__(self):
        leaves = self._core.next()
        if leaves is None:
            raise StopIteration
        return self._pack(self._convert(leaves))
