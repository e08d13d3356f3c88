# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's operations on values, and recorded in a map."""
import numpy as np
import tensorflow as tf


def shown(value):
    if isinstance(value, (list, tuple)):
        return "; ".join(map(shown, value))
    array = np.asarray(value.numpy())
    if array.dtype.kind == "f":
        array = np.round(array.astype(np.float64), 4) + 0.0
    return f"{value.dtype.name} {array.tolist()}"


def show(name, function, *arguments):
    eager = shown(function(*map(tf.constant, arguments)))
    dataset = tf.data.Dataset.from_tensors(tuple(arguments)).map(lambda *x: function(*x))
    for mapped in dataset:
        print(name, eager, "" if shown(mapped) == eager else "but mapped " + shown(mapped))


floats = np.array([[0.25, -1.5, 2.0], [3.0, 0.5, -0.75]], np.float32)
ints = np.array([[3, -7, 12], [5, 1, -2]], np.int32)
longs = ints.astype(np.int64)
flags = np.array([[True, False, True], [True, True, True]])
words = np.array(["ab", "", "C d e"])
image = (np.arange(4 * 6 * 3).reshape(4, 6, 3) * 3 % 256).astype(np.uint8)

# Values.
print("constant", shown([tf.constant(1), tf.constant(2.5), tf.constant("a"), tf.constant(True), tf.constant([1, 2])]))
print("constant", shown([tf.constant([1, 2], tf.float32), tf.constant(0, shape=[2, 2]), tf.constant(2**40)]))
print("convert", shown(tf.convert_to_tensor([[1.0, 2.0]])))
print("range", shown([tf.range(4), tf.range(1, 4), tf.range(3.0), tf.range(0, 10, 3, dtype=tf.int64)]))
print("zeros", shown([tf.zeros([2, 3]), tf.ones([2], tf.int32), tf.zeros([1], tf.bool), tf.zeros([2], tf.string)]))
print("fill", shown([tf.fill([2], 7), tf.fill([1, 2], 0.5), tf.eye(2), tf.linspace(0.0, 1.0, 3)]))
show("like", lambda x: (tf.zeros_like(x), tf.ones_like(x, dtype=tf.float32)), longs)

# Shapes.
show("shape", lambda x: (tf.shape(x), tf.size(x), tf.rank(x)), floats)
show("reshape", lambda x: tf.reshape(x, [3, -1]), ints)
show("reshape to a shape", lambda x: tf.reshape(tensor=x, shape=(tf.shape(x)[1], 2)), ints)
show("expand_dims", lambda x: tf.expand_dims(x, axis=-1), ints)
show("squeeze", lambda x: tf.squeeze(tf.expand_dims(x, 0), axis=0), ints)
show("transpose", lambda x: (tf.transpose(x), tf.transpose(x, perm=[0, 1])), ints)
show("tile", lambda x: tf.tile(x, [1, 2]), ints)
show("broadcast_to", lambda x: tf.broadcast_to(x, [2, 2, 3]), ints)
show("reverse", lambda x: tf.reverse(x, axis=[1]), ints)
show("pad", lambda x: tf.pad(x, [[0, 1], [1, 0]]), ints)
show("pad with", lambda x: tf.pad(x, [[0, 0], [2, 1]], constant_values=9), ints)
show("pad mirrored", lambda x: tf.pad(x, [[1, 0], [1, 1]], mode="REFLECT"), ints)
show("slice", lambda x: tf.slice(x, [0, 1], [2, 2]), ints)
show("gather", lambda x: (tf.gather(x, [2, 0], axis=1), tf.gather(params=x, indices=1)), ints)
show("concat", lambda x: tf.concat([x, x], axis=1), ints)
show("stack", lambda x: tf.stack([x, x], axis=1), ints)
show("unstack", lambda x: tuple(tf.unstack(x)), ints)
show("split", lambda x: tuple(tf.split(x, 3, axis=1)), ints)
show("split to sizes", lambda x: tuple(tf.split(x, [1, 2], axis=1)), ints)
show("where", lambda x: (tf.where(x > 0, x, -x), tf.where(x > 0, 1, 0), tf.where(x > 0, 1.0, 0.5)), ints)
show("cond", lambda x: tf.cond(x[0, 0] > 2, lambda: x + 1, lambda: x - 1), ints)
show("one_hot", lambda x: tf.one_hot(x, 4), ints)
show("one_hot with", lambda x: tf.one_hot(x, depth=4, on_value=5, off_value=-1), ints)
show("sort", lambda x: (tf.sort(x), tf.sort(x, axis=0, direction="DESCENDING"), tf.argsort(x)), ints)
show("clip_by_value", lambda x: tf.clip_by_value(x, -1, 4), ints)
show("matmul", lambda x: (tf.matmul(x, x, transpose_b=True), tf.matmul(x, x, transpose_a=True)), floats)
show("cast", lambda x: (tf.cast(x, tf.float32), tf.cast(x, "int64"), tf.cast(x, tf.bool)), ints)

# Numbers.
show("add", lambda x: (tf.add(x, 1), tf.subtract(x, x), tf.multiply(x, 2), tf.math.floordiv(x, 2), x // 2), ints)
show("divide", lambda x: (tf.divide(x, 2), x / 2, tf.math.truediv(x, x)), ints)
show("divide floats", lambda x: (tf.divide(x, 2), x / 2, 1.0 / x), floats)
show("mod", lambda x: (tf.math.mod(x, 4), x % 4, tf.math.floormod(x, 4)), ints)
show("pow", lambda x: (tf.pow(x, 2), x**2, tf.square(x), tf.math.squared_difference(x, 1.0)), floats)
show("abs", lambda x: (tf.abs(x), tf.negative(x), tf.sign(x), tf.floor(x), tf.math.ceil(x), tf.round(x)), floats)
show("exp", lambda x: (tf.exp(x), tf.sqrt(tf.abs(x)), tf.math.rsqrt(tf.abs(x)), tf.math.log(tf.abs(x))), floats)
show("sin", lambda x: (tf.sin(x), tf.cos(x), tf.tanh(x), tf.sigmoid(x), tf.math.log1p(tf.abs(x))), floats)
show("compare", lambda x: (tf.equal(x, 5), tf.less(x, 3), tf.greater_equal(x, 3), tf.not_equal(x, x), x == 5), ints)
show("maximum", lambda x: (tf.maximum(x, 2), tf.minimum(x, x)), ints)
show("logical", lambda x: (tf.logical_and(x, ~x), tf.logical_or(x, ~x), tf.logical_not(x), x & x), flags)
show("reduce", lambda x: (tf.reduce_sum(x), tf.reduce_max(x, axis=0), tf.reduce_min(x, 1), tf.reduce_prod(x)), ints)
show("reduce floats", lambda x: (tf.reduce_mean(x), tf.reduce_sum(input_tensor=x, axis=-1, keepdims=True)), floats)
show("reduce_mean", lambda x: tf.reduce_mean(x, axis=1), longs)
show("reduce_std", lambda x: (tf.math.reduce_std(x), tf.math.reduce_variance(x, axis=0)), floats)
show("reduce_any", lambda x: (tf.reduce_any(x), tf.reduce_all(x, axis=1)), flags)
show("argmax", lambda x: (tf.argmax(x), tf.argmax(x, axis=1), tf.argmin(x, axis=-1, output_type=tf.int32)), floats)
show("cumsum", lambda x: (tf.cumsum(x, axis=1), tf.cumsum(x, exclusive=True)), ints)
show("softmax", lambda x: tf.math.softmax(x), floats)
show("top_k", lambda x: tuple(tf.math.top_k(x, k=2)), ints)

# Strings.
show("length", lambda x: tf.strings.length(x), words)
show("upper", lambda x: (tf.strings.upper(x), tf.strings.lower(x), tf.strings.strip(x + " ")), words)
show("join", lambda x: tf.strings.join([x, "!"], separator="-"), words)
show("reduce_join", lambda x: tf.strings.reduce_join(x, separator=","), words)
show("substr", lambda x: tf.strings.substr(x + "xyz", 1, 2), words)
show("split", lambda x: tf.strings.split(x, sep="/"), np.array("a/b//c"))
show("split at spaces", lambda x: tf.strings.split(x), np.array(" one  two "))
show("to_number", lambda x: (tf.strings.to_number(x), tf.strings.to_number(x, out_type=tf.int32)), np.array(["7", "-2"]))
show("as_string", lambda x: tf.strings.as_string(x), ints)
show("regex", lambda x: (tf.strings.regex_replace(x, "[a-c]", "_"), tf.strings.regex_full_match(x, ".*b")), words)
show("hash", lambda x: tf.strings.to_hash_bucket_fast(x, num_buckets=100), words)
show("decode_raw", lambda x: tf.io.decode_raw(x, tf.uint8), words[0])

# Images.
show("convert_image_dtype", lambda x: tf.image.convert_image_dtype(x, tf.float32), image[:1, :2])
show("and back", lambda x: tf.image.convert_image_dtype(x / 255, tf.uint8), image[:1, :2].astype(np.float32))
show("resize", lambda x: tf.image.resize(x, [2, 3]), image)
show("resize to the nearest", lambda x: tf.image.resize(x, (3, 2), method="nearest"), image)
show("flip", lambda x: (tf.image.flip_left_right(x), tf.image.flip_up_down(x)), image[:2, :2])
show("crop", lambda x: tf.image.crop_to_bounding_box(x, 1, 2, 2, 1), image)
show("central_crop", lambda x: tf.image.central_crop(x, 0.5), image)
show("resize_with_crop_or_pad", lambda x: tf.image.resize_with_crop_or_pad(x, 2, 9), image)
show("adjust_brightness", lambda x: tf.image.adjust_brightness(x, 0.25), image[:1, :2].astype(np.float32) / 255)
show("adjust_contrast", lambda x: tf.image.adjust_contrast(x, 0.5), image[:1, :2].astype(np.float32) / 255)
show("adjust bytes", lambda x: (tf.image.adjust_brightness(x, 0.25), tf.image.adjust_contrast(x, 2.0)), image[:1, :2])
show("per_image_standardization", lambda x: tf.image.per_image_standardization(x), image[:1, :2])
show("rgb_to_grayscale", lambda x: (tf.image.rgb_to_grayscale(x), tf.image.grayscale_to_rgb(x[..., :1])), image[:1, :2])
