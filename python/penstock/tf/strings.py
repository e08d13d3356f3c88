# SPDX-License-Identifier: Apache-2.0
"""tf.strings: TensorFlow's signatures and dtypes over penstock.ops. Strings are bytes."""

from .. import ops
from ..dtypes import as_dtype
from ._operation import as_tensor, operation


@operation
def length(input, unit="BYTE", name=None):  # noqa: A002 (as TensorFlow's)
    """Returns the number of bytes, int32."""
    if unit != "BYTE":
        raise NotImplementedError(f"length: unit {unit} is not supported; use BYTE")
    return as_tensor(ops.string_length(as_tensor(input)), "int32")


@operation
def lower(input, encoding="", name=None):  # noqa: A002
    """Converts ASCII letters to lower case."""
    return ops.string_lower(as_tensor(input))


@operation
def upper(input, encoding="", name=None):  # noqa: A002
    """Converts ASCII letters to upper case."""
    return ops.string_upper(as_tensor(input))


@operation
def strip(input, name=None):  # noqa: A002
    """Removes white space at both ends."""
    return ops.string_strip(as_tensor(input))


@operation
def split(input, sep=None, maxsplit=-1, name=None):  # noqa: A002
    """Splits at `sep`, by default at runs of white space. A scalar becomes a vector, a vector becomes ragged rows."""
    if maxsplit != -1:
        raise NotImplementedError("split: maxsplit is not supported; select parts of the whole split instead")
    return ops.string_split(as_tensor(input), sep or "")


@operation
def join(inputs, separator="", name=None):
    """Joins the inputs, value by value."""
    return ops.string_join([as_tensor(one) for one in inputs], separator)


@operation
def reduce_join(inputs, axis=None, keepdims=False, separator="", name=None):
    """Joins the values along `axis`; all of them if None."""
    x = as_tensor(inputs)
    if axis is None:
        joined = ops.reduce_join(ops.reshape(x, [-1]), 0, separator)
        return ops.reshape(joined, [1] * x.ndim) if keepdims else joined
    joined = ops.reduce_join(x, axis, separator)
    return ops.expand_dims(joined, axis) if keepdims else joined


@operation
def substr(input, pos, len, unit="BYTE", name=None):  # noqa: A002
    """Returns `len` bytes, starting at `pos`."""
    if unit != "BYTE":
        raise NotImplementedError(f"substr: unit {unit} is not supported; use BYTE")
    return ops.substr(as_tensor(input), as_tensor(pos), as_tensor(len))


@operation
def to_number(input, out_type="float32", name=None):  # noqa: A002
    """Parses a string as a number."""
    return ops.string_to_number(as_tensor(input), as_dtype(out_type))


@operation
def as_string(input, precision=-1, name=None):  # noqa: A002
    """Converts a number to a string."""
    return ops.as_string(as_tensor(input), precision)


@operation
def regex_full_match(input, pattern, name=None):  # noqa: A002
    """Returns whether the whole string matches the RE2 pattern."""
    return ops.regex_full_match(as_tensor(input), pattern)


@operation
def regex_replace(input, pattern, rewrite, replace_global=True, name=None):  # noqa: A002
    """Replaces each match of the pattern, or only the first one."""
    return ops.regex_replace(as_tensor(input), pattern, rewrite, replace_global)


@operation
def to_hash_bucket_fast(input, num_buckets, name=None):  # noqa: A002
    """Returns the same hash, below `num_buckets`, as TensorFlow."""
    return ops.string_to_hash_bucket(as_tensor(input), num_buckets)
