# SPDX-License-Identifier: Apache-2.0
"""Specs of the elements of a dataset: nests of tuples and dicts whose leaves are specs."""

from . import _core, nest
from .dtypes import as_dtype


class TypeSpec:
    """The spec of one leaf."""

    __slots__ = ("_leaf",)

    def __init__(self, leaf):
        self._leaf = leaf

    @property
    def dtype(self):
        return self._leaf.dtype

    @property
    def shape(self):
        """A tuple with None for unknown dimensions; None for an unknown rank."""
        return self._leaf.shape

    def is_compatible_with(self, spec_or_value):
        """Returns whether another spec, a tensor or an array has this kind and dtype, and a shape that fits."""
        other = spec_or_value if isinstance(spec_or_value, TypeSpec) else _spec_of(spec_or_value)
        if other is None:
            return False
        mine, theirs = self._leaf, other._leaf
        return (
            (mine.kind, mine.dtype, mine.ragged_rank) == (theirs.kind, theirs.dtype, theirs.ragged_rank)
            and (mine.optional or not theirs.optional)
            and _shapes_fit(mine.shape, theirs.shape)
        )

    def _key(self):
        leaf = self._leaf
        return type(self), leaf.dtype, leaf.shape, leaf.ragged_rank, leaf.optional

    def __eq__(self, other):
        return isinstance(other, TypeSpec) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return f"{type(self).__name__}(shape={_show(self.shape)}, dtype={self.dtype!r})"


class TensorSpec(TypeSpec):
    """A dense tensor. `shape`: a sequence with None for unknown dimensions, or None for an unknown rank."""

    __slots__ = ()

    def __init__(self, shape, dtype="float32", name=None):
        super().__init__(_core.LeafSpec(shape, as_dtype(dtype)))

    @classmethod
    def from_tensor(cls, tensor, name=None):
        """The spec of a tensor or array."""
        return cls(tensor.shape, tensor.dtype)


class RaggedTensorSpec(TypeSpec):
    """A tensor whose rows differ in length, at `ragged_rank` levels."""

    __slots__ = ()

    def __init__(self, shape=None, dtype="float32", ragged_rank=1):
        super().__init__(_core.LeafSpec(shape, as_dtype(dtype), _core.Kind.RAGGED, ragged_rank))

    @property
    def ragged_rank(self):
        """The number of levels of rows."""
        return self._leaf.ragged_rank


class SparseTensorSpec(TypeSpec):
    """A sparse tensor: values at given indices of a tensor of `shape`."""

    __slots__ = ()

    def __init__(self, shape=None, dtype="float32"):
        super().__init__(_core.LeafSpec(shape, as_dtype(dtype), _core.Kind.SPARSE))


class OptionalSpec(TypeSpec):
    """A tensor that an element may leave out (None)."""

    __slots__ = ()

    def __init__(self, shape, dtype="float32"):
        super().__init__(_core.LeafSpec(shape, as_dtype(dtype), optional=True))


def _spec_of(value):
    """Returns the spec of a dense tensor or array; None for anything else."""
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return None
    return TensorSpec(value.shape, value.dtype)


def _shapes_fit(one, other):
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(a is None or b is None or a == b for a, b in zip(one, other))


def _show(shape):
    return "<unknown>" if shape is None else "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def of_leaf(leaf):
    """Returns the TypeSpec of a _core.LeafSpec."""
    if leaf.kind == _core.Kind.RAGGED:
        kind = RaggedTensorSpec
    elif leaf.kind == _core.Kind.SPARSE:
        kind = SparseTensorSpec
    else:
        kind = OptionalSpec if leaf.optional else TensorSpec
    spec = kind.__new__(kind)
    spec._leaf = leaf
    return spec


def plain(element_spec):
    """Returns a nest of specs in the form of _core."""
    return nest.plain(nest.map_leaves(lambda leaf: leaf._leaf, element_spec))
