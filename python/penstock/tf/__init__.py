# SPDX-License-Identifier: Apache-2.0
"""Penstock's objects under TensorFlow's paths, so that a tf.data service script changes its import line:

    import penstock.tf as tf
"""

import functools
import types

from .. import (  # noqa: F401
    DType,
    RaggedTensor,
    RaggedTensorSpec,
    SparseTensor,
    SparseTensorSpec,
    Tensor,
    TensorSpec,
    as_dtype,
    bfloat16,
    complex64,
    complex128,
    errors,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    ops,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .. import bool  # noqa: A004, F401
from .. import nest as _nest
from ..expr import as_expr as constant  # noqa: F401
from ..ops import (  # noqa: F401
    abs,
    argsort,
    cast,
    concat,
    cumsum,
    expand_dims,
    gather,
    maximum,
    minimum,
    one_hot,
    pad,
    range,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    reshape,
    reverse,
    round,
    sign,
    size,
    slice,
    sort,
    sqrt,
    squeeze,
    stack,
    tanh,
    tile,
    transpose,
    unstack,
    where,
)
from ..ops import broadcast_to, matmul  # noqa: F401
from ..ops import shape_of as shape  # noqa: F401
from . import data, distribute  # noqa: F401


def function(func=None, input_signature=None, **_):
    """`func` as it is: nothing is compiled. With `input_signature`, one nest of specs for each argument, a call whose
    arguments do not fit it is a TypeError."""
    if func is None:
        return functools.partial(function, input_signature=input_signature)
    if input_signature is None:
        return func

    @functools.wraps(func)
    def checked(*args):
        if len(args) != len(input_signature):
            wanted = len(input_signature)
            raise TypeError(f"{func.__name__} takes {wanted} argument(s) by its signature, not {len(args)}")
        for i, (spec, given) in enumerate(zip(input_signature, args)):
            _nest.assert_same(spec, given, f"argument {i} of {func.__name__} and its signature")
            for of_leaf, leaf in zip(_nest.leaves(spec), _nest.leaves(given)):
                if not of_leaf.is_compatible_with(leaf):
                    raise TypeError(f"argument {i} of {func.__name__} is {leaf!r} where its signature says {of_leaf!r}")
        return func(*args)

    return checked


def _namespace(**names):
    return types.SimpleNamespace(**names)


math = _namespace(
    **{
        name: getattr(ops, name)
        for name in (
            "abs acos add argmax argmin asin atan atan2 ceil cos cosh cumsum divide equal exp expm1 floor greater "
            "greater_equal is_finite is_inf is_nan less less_equal log log1p logical_and logical_not logical_or "
            "maximum minimum mod multiply negative not_equal reduce_all reduce_any reduce_max reduce_mean reduce_min "
            "reduce_prod reduce_sum round sigmoid sign sin sinh sqrt subtract tan tanh top_k"
        ).split()
    },
    pow=ops.power,
)
argmax, argmin, pow = ops.argmax, ops.argmin, ops.power
strings = _namespace(
    length=ops.string_length,
    lower=ops.string_lower,
    upper=ops.string_upper,
    strip=ops.string_strip,
    split=ops.string_split,
    join=ops.string_join,
    reduce_join=ops.reduce_join,
    substr=ops.substr,
    to_number=ops.string_to_number,
    as_string=ops.as_string,
    regex_full_match=ops.regex_full_match,
    regex_replace=ops.regex_replace,
    to_hash_bucket_fast=ops.string_to_hash_bucket,
)
io = _namespace(
    read_file=ops.read_file,
    decode_raw=ops.decode_raw,
    decode_jpeg=ops.decode_jpeg,
    decode_png=ops.decode_png,
    decode_image=ops.decode_image,
)
image = _namespace(
    decode_jpeg=ops.decode_jpeg,
    decode_png=ops.decode_png,
    decode_image=ops.decode_image,
    flip_left_right=ops.flip_left_right,
    flip_up_down=ops.flip_up_down,
)
random = _namespace(uniform=ops.random_uniform, normal=ops.random_normal)
