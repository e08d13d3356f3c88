# SPDX-License-Identifier: Apache-2.0
"""The functions of Dataset that create a dataset, from a source or from other datasets."""

import os

from . import _core, expr, functions, nest, spec, values
from .windows import OneWindow


class Sources:
    """The part of Dataset that creates a dataset."""

    @classmethod
    def range(cls, *args, output_type="int64", name=None):
        """int64 scalars: range(stop), range(start, stop), range(start, stop, step)."""
        if len(args) == 1 and isinstance(args[0], expr.Expr):
            dataset = cls(_core.Dataset.range_of(args[0]))
        elif 1 <= len(args) <= 3:
            start, stop, step = (0, *args, 1)[-3:] if len(args) == 1 else (*args, 1)[:3]
            dataset = cls(_core.Dataset.range(int(start), int(stop), int(step)))
        else:
            raise ValueError(f"range takes 1 to 3 arguments, not {len(args)}")
        if dataset.element_spec.dtype == output_type:
            return dataset
        return dataset.map(lambda x: x.astype(output_type))

    @classmethod
    def counter(cls, start=0, step=1, dtype="int64", name=None):
        """Produces start, start + step, … without end."""
        limit = 2**63 - 1 if step > 0 else -(2**63)
        return cls.range(start, limit, step, output_type=dtype)

    @classmethod
    def from_tensors(cls, tensors, name=None):
        """Produces one element: this nest of arrays. In `group_by_window` it may be a window, which `flat_map` flattens."""
        if isinstance(tensors, cls):
            return OneWindow(tensors)
        return cls(*_from(tensors, _core.Dataset.from_tensors, _core.Dataset.tensors_of))

    @classmethod
    def from_tensor_slices(cls, tensors, name=None):
        """Produces an element for each row of this nest of arrays."""
        return cls(*_from(tensors, _core.Dataset.from_tensor_slices, _core.Dataset.tensor_slices_of))

    @classmethod
    def from_generator(
        cls,
        generator,
        output_types=None,
        output_shapes=None,
        args=None,
        output_signature=None,
        name=None,
        deterministic=True,
        version=None,
        by_value=False,
    ):
        """Produces the elements that generator(*args) yields, in a Python process. The generator is called again for each
        pass, and to return to a position; the elements before the position are then skipped. So it must yield the same
        elements each time, unless deterministic=False. The source has one split: only one of the workers that share a
        pass reads it."""
        if not callable(generator):
            raise TypeError("from_generator expects a callable that returns an iterator, such as a generator function")
        if output_signature is None:
            if output_types is None:
                raise ValueError("from_generator needs output_signature or output_types")
            output_signature = _signature(output_types, output_shapes)
        if args:
            generator = functions.applied(generator, args)
        sent = functions.PyFunction(generator, output_signature, deterministic, version, by_value)
        return cls(sent.generator(), output_signature)

    @classmethod
    def list_files(cls, file_pattern, shuffle=None, seed=None, name=None):
        """Produces the file names that match one pattern or several, shuffled again in each repetition unless `shuffle`
        is False. If no file matches, raises errors.NotFoundError when reading starts."""
        return cls(_core.Dataset.list_files(file_names(file_pattern), shuffle is None or bool(shuffle), seed))

    @classmethod
    def zip(cls, *args, datasets=None, name=None):
        """Produces tuples, or another nest, with one element of each dataset. Ends with the shortest dataset."""
        if datasets is not None:
            args = (datasets,)
        given = args[0] if len(args) == 1 and nest.is_nest(args[0]) else tuple(args)
        if not nest.leaves(given) or not all(isinstance(leaf, cls) for leaf in nest.leaves(given)):
            raise TypeError(f"zip expects datasets or a nest of datasets, not {given!r}")
        zipped = cls(
            _core.Dataset.zip([leaf._core for leaf in nest.leaves(given)]),
            tuple(leaf.element_spec for leaf in nest.leaves(given)),
        )
        if type(given) is tuple and not any(map(nest.is_nest, given)):
            return zipped
        pack = nest.packer(given)
        return zipped.map(lambda *members: pack(members))

    @classmethod
    def choose_from_datasets(cls, datasets, choice_dataset, stop_on_empty_dataset=True):
        """Produces an element for each int64 of `choice_dataset`, which is the index of its dataset in `datasets`."""
        return cls(
            _core.Dataset.choose_from_datasets(
                [dataset._core for dataset in datasets], choice_dataset._core, stop_on_empty_dataset
            ),
            datasets[0].element_spec if datasets else None,
        )

    @classmethod
    def sample_from_datasets(
        cls,
        datasets, weights=None, seed=None, stop_on_empty_dataset=False, rerandomize_each_iteration=None
    ):
        """Produces elements of `datasets`, drawn at random by weight. The weights are equal by default."""
        return cls(
            _core.Dataset.sample_from_datasets(
                [dataset._core for dataset in datasets],
                [] if weights is None else [float(weight) for weight in weights],
                seed,
                stop_on_empty_dataset,
                bool(rerandomize_each_iteration),
            ),
            datasets[0].element_spec if datasets else None,
        )


# --- Inside ------------------------------------------------------------------------------------


def file_names(given):
    if isinstance(given, (str, bytes, os.PathLike)):
        given = [given]
    return [os.fsdecode(name) for name in given]


def _signature(output_types, output_shapes):
    if output_shapes is None:
        return nest.map_leaves(lambda dtype: spec.TensorSpec(None, dtype), output_types)
    shapes = iter(nest.leaves_to(output_types, output_shapes, "output_shapes"))
    return nest.map_leaves(lambda dtype: spec.TensorSpec(next(shapes), dtype), output_types)


def _from(tensors, of_values, of_expr):
    tensors = _lists_made_tensors(tensors)
    if any(isinstance(leaf, expr.Expr) for leaf in nest.leaves(tensors)):
        traced = expr.as_expr(tensors)
        return of_expr(traced), tensors
    flat = []

    def leaf_spec(value):
        dtype, shape, data = values.given(value)
        flat.append((dtype, list(shape), data))
        return _core.LeafSpec(shape, dtype)

    plain = nest.plain(nest.map_leaves(leaf_spec, tensors))
    return of_values(flat, plain), tensors


def _lists_made_tensors(tensors):
    """Turns each list into one tensor, as tf.data does. A list of traced values is stacked."""
    return nest.map_leaves(lambda leaf: expr.as_expr(leaf) if expr._has_expr(leaf) else leaf, tensors)
