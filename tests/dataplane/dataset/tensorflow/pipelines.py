# SPDX-License-Identifier: Apache-2.0
"""Small tf.data pipelines as users write them for TensorFlow, each under a name.

write_expected.py runs them with TensorFlow and stores the results; comparison_test.py (tests/python) runs them with
penstock.tf under TensorFlow's name and compares. pipelines_*.cc are the same in C++.
"""
import pathlib

import numpy as np
import tensorflow as tf

DATA = pathlib.Path(__file__).resolve().parent / "data"
Dataset = tf.data.Dataset
range_ = Dataset.range

PIPELINES = {}  # name -> (function, any_order)


def add(name, function, any_order=False):
    assert name not in PIPELINES, name
    PIPELINES[name] = (function, any_order)


def i64(*values):
    return np.array(values, np.int64)


def numbers(*values):
    return Dataset.from_tensor_slices(i64(*values))


def vectors(*lengths):
    """Returns 0, 1 … n - 1 as one tensor, for each n."""
    return numbers(*lengths).map(tf.range)


def strings(*values):
    return Dataset.from_tensor_slices(list(values))


# --- Sources -----------------------------------------------------------------
add("range_stop", lambda: range_(5))
add("range_start_stop", lambda: range_(2, 7))
add("range_step", lambda: range_(0, 10, 3))
add("range_negative_step", lambda: range_(5, -5, -2))
add("range_empty", lambda: range_(0))
add("range_that_cannot_begin", lambda: range_(5, 2))
add("from_tensors_scalar", lambda: Dataset.from_tensors(np.float32(3.5)))
add("from_tensors_vector", lambda: Dataset.from_tensors(i64(1, 2, 3)))
add("from_tensors_tuple", lambda: Dataset.from_tensors((np.int64(1), "a")))
add("from_tensor_slices_ints", lambda: Dataset.from_tensor_slices(np.array([1, -2, 3], np.int32)))
add("from_tensor_slices_matrix", lambda: Dataset.from_tensor_slices(i64([1, 2], [3, 4], [5, 6])))
add("from_tensor_slices_strings", lambda: strings("a", "", "ccc"))
add("from_tensor_slices_dict", lambda: Dataset.from_tensor_slices(
    {"b": [["x"], ["y"]], "a": i64(1, 2)}))
add("from_tensor_slices_bools", lambda: Dataset.from_tensor_slices([True, False, True]))
add("text_lines", lambda: tf.data.TextLineDataset(str(DATA / "a.txt")))
add("text_lines_of_two_files", lambda: tf.data.TextLineDataset(
    [str(DATA / "a.txt"), str(DATA / "b.txt")]))
add("text_lines_of_listed_files", lambda: Dataset.list_files(
    str(DATA / "*.txt"), shuffle=False).flat_map(tf.data.TextLineDataset))
add("text_lines_interleaved", lambda: Dataset.list_files(
    str(DATA / "*.txt"), shuffle=False).interleave(
        tf.data.TextLineDataset, cycle_length=2, block_length=2))
add("tfrecords", lambda: tf.data.TFRecordDataset(str(DATA / "a.tfrecord")))
add("tfrecords_of_two_files", lambda: tf.data.TFRecordDataset(
    [str(DATA / "a.tfrecord"), str(DATA / "b.tfrecord")]))
add("tfrecords_gzip", lambda: tf.data.TFRecordDataset(
    str(DATA / "a.tfrecord.gz"), compression_type="GZIP"))
add("tfrecords_zlib", lambda: tf.data.TFRecordDataset(
    str(DATA / "a.tfrecord.zlib"), compression_type="ZLIB"))
add("fixed_length_records", lambda: tf.data.FixedLengthRecordDataset(str(DATA / "fixed.bin"), 8))
add("fixed_length_records_with_header_and_footer", lambda: tf.data.FixedLengthRecordDataset(
    str(DATA / "fixed.bin"), 4, header_bytes=2, footer_bytes=2))

# --- Joining -----------------------------------------------------------------
add("zip_two", lambda: Dataset.zip(range_(3), range_(10, 13)))
add("zip_ends_with_the_shortest", lambda: Dataset.zip(range_(7), range_(10, 13), range_(5)))
add("zip_nested", lambda: Dataset.zip((range_(3), (range_(10, 13), range_(20, 30)))))
add("zip_of_batches", lambda: Dataset.zip(range_(7), range_(20).batch(5)))
add("zip_with_nothing", lambda: Dataset.zip(range_(7), range_(0)))
add("zip_of_the_same", lambda: Dataset.zip(range_(3).repeat(2), range_(3).skip(1)))
add("concatenate", lambda: range_(1, 4).concatenate(range_(4, 8)))
add("concatenate_shapes", lambda: range_(4).batch(2, True).concatenate(range_(3).batch(3, True)))
add("concatenate_nothing", lambda: range_(0).concatenate(range_(2)).concatenate(range_(0)))
add("concatenate_repeated", lambda: range_(2).concatenate(range_(5, 7)).repeat(2))
add("choose_documented", lambda: Dataset.choose_from_datasets(
    [Dataset.from_tensors("foo").repeat(), Dataset.from_tensors("bar").repeat(),
     Dataset.from_tensors("baz").repeat()], range_(3).repeat(3)))
add("choose_stops_on_empty", lambda: Dataset.choose_from_datasets(
    [range_(2), range_(10, 20)], numbers(0, 1, 0, 1, 0, 1, 1)))
add("choose_passes_over_empty", lambda: Dataset.choose_from_datasets(
    [range_(2), range_(10, 20)], numbers(0, 1, 0, 1, 0, 1, 1), stop_on_empty_dataset=False))
add("choose_until_all_are_empty", lambda: Dataset.choose_from_datasets(
    [range_(2), range_(10, 15)], range_(2).repeat(), stop_on_empty_dataset=False))
add("choose_nothing", lambda: Dataset.choose_from_datasets([range_(2), range_(3)], range_(0)))
add("choose_one", lambda: Dataset.choose_from_datasets([range_(5, 9)], numbers(0, 0, 0)))
add("choose_of_tuples", lambda: Dataset.choose_from_datasets(
    [range_(9).enumerate(), range_(20, 29).enumerate(100)], numbers(1, 1, 0, 1)))
add("sample_all", lambda: Dataset.sample_from_datasets([range_(5), range_(10, 14)], seed=1), True)
add("sample_with_weights", lambda: Dataset.sample_from_datasets(
    [range_(5), range_(10, 14), range_(20, 29)], weights=[0.2, 0.0, 0.8], seed=1), True)
add("sample_of_one", lambda: Dataset.sample_from_datasets([range_(5)]))

# --- Element by element --------------------------------------------------------
add("map_add", lambda: range_(1, 6).map(lambda x: x + 1))
add("map_struct", lambda: range_(3).map(lambda x: {"y": x * x, "x": (x, x > 1)}))
add("map_cast", lambda: range_(-2, 3).map(lambda x: tf.cast(x, tf.float32) / 2.0))
add("map_floor_division", lambda: range_(-5, 6).map(lambda x: (x // 3, x % 3)))
add("map_string_length", lambda: strings("", "a", "abc").map(tf.strings.length))
add("map_string_join", lambda: strings("a", "b").map(lambda s: s + "!"))
add("map_where", lambda: range_(5).map(lambda x: tf.where(x > 2, x, -x)))
add("map_reshape", lambda: range_(6).batch(6, True).map(lambda x: tf.reshape(x, [2, 3])))
add("map_reduce_sum", lambda: range_(7).batch(3).map(tf.reduce_sum))
add("map_one_hot", lambda: range_(4).map(lambda x: tf.one_hot(x, 3)))
add("map_gather", lambda: numbers(2, 0, 1).map(lambda i: tf.gather(i64(10, 20, 30), i)))
add("map_parallel", lambda: range_(20).map(lambda x: x * x, num_parallel_calls=4))
add("map_to_shapes", lambda: vectors(0, 2, 1, 3))
add("filter_less", lambda: numbers(1, 2, 3).filter(lambda x: x < 3))
add("filter_all", lambda: range_(5).filter(lambda x: x < 0))
add("filter_strings", lambda: strings("a", "", "ccc").filter(lambda s: tf.strings.length(s) > 0))
add("filter_of_tuples", lambda: Dataset.zip(range_(6), range_(6, 0, -1)).filter(lambda a, b: a < b))
add("filter_then_batch", lambda: range_(20).filter(lambda x: x % 3 == 1).batch(3))
add("enumerate", lambda: numbers(1, 2, 3).enumerate(5))
add("enumerate_of_tuples", lambda: Dataset.zip(range_(2), range_(5, 7)).enumerate())
add("enumerate_repeated", lambda: range_(2).enumerate().repeat(2))
add("scan_sum", lambda: range_(1, 6).scan(np.int64(0), lambda s, x: (s + x, s + x)))
add("scan_documented", lambda: range_(10).scan(np.int64(0), lambda s, x: (s + x, s)))
add("scan_of_structures", lambda: range_(4).scan(
    {"n": np.int64(0), "t": ""},
    lambda s, x: ({"n": s["n"] + x, "t": s["t"] + "."}, (s["n"], s["t"]))))
add("scan_of_a_vector", lambda: range_(6).batch(2, True).scan(
    i64(0, 0), lambda s, x: (s + x, s * x)))
add("scan_of_changing_shapes", lambda: vectors(1, 3, 2).scan(
    np.zeros([0], np.int64), lambda s, x: (x, s)))
add("scan_of_nothing", lambda: range_(0).scan(np.int64(0), lambda s, x: (s + x, s)))
add("take_while", lambda: numbers(1, 2, 9, 3).take_while(lambda x: x < 5))
add("take_while_all", lambda: range_(3).take_while(lambda x: x < 5))
add("take_while_none", lambda: range_(3).take_while(lambda x: x < 0))
add("take_while_of_what_has_no_end", lambda: range_(3).repeat().enumerate().take_while(
    lambda i, x: i < 7))
add("ignore_errors", lambda: strings("1", "x", "3", "").map(
    lambda s: tf.strings.to_number(s, tf.int64)).ignore_errors())
add("ignore_errors_of_none", lambda: range_(3).ignore_errors())
add("ignore_errors_of_all", lambda: strings("x", "y").map(
    lambda s: tf.strings.to_number(s, tf.int64)).ignore_errors())
add("ignore_errors_then_batch", lambda: strings("1", "x", "3", "4").map(
    lambda s: tf.strings.to_number(s, tf.int64)).ignore_errors().batch(2))

# --- Datasets in functions -------------------------------------------------------
add("flat_map_rows", lambda: range_(9).batch(3).flat_map(Dataset.from_tensor_slices))
add("flat_map_ranges", lambda: numbers(0, 2, 0, 0, 1).flat_map(range_))
add("flat_map_of_repeats", lambda: numbers(3, 1).flat_map(
    lambda x: Dataset.from_tensors(x).repeat(2)))
add("flat_map_in_flat_map", lambda: range_(4).flat_map(
    lambda x: range_(x).flat_map(lambda y: range_(y + 1))))
add("flat_map_of_tuples", lambda: Dataset.zip(range_(3), range_(2, 5)).flat_map(
    lambda a, b: range_(b).map(lambda y: y + 10)))
add("interleave_documented", lambda: range_(1, 6).interleave(
    lambda x: Dataset.from_tensors(x).repeat(6), cycle_length=2, block_length=4))
add("interleave_cycle_1", lambda: range_(5).interleave(range_, cycle_length=1))
add("interleave_cycle_2", lambda: numbers(2, 3, 2).interleave(range_, cycle_length=2))
add("interleave_cycle_3_block_2", lambda: numbers(5, 1, 4, 0, 3, 2).interleave(
    range_, cycle_length=3, block_length=2))
add("interleave_block_3", lambda: numbers(10, 20, 30).interleave(
    lambda x: Dataset.from_tensors(x).repeat(4), cycle_length=3, block_length=3))
add("interleave_more_places_than_elements", lambda: numbers(2, 3).interleave(
    range_, cycle_length=9))
add("interleave_of_empty", lambda: numbers(0, 0, 2, 0).interleave(range_, cycle_length=2))
add("interleave_many", lambda: range_(11).interleave(
    lambda x: range_(x * x % 7), cycle_length=4, block_length=3))

# --- Cutting and repeating ---------------------------------------------------------
add("take", lambda: range_(10).take(3))
add("take_more", lambda: range_(2).take(3))
add("take_all", lambda: range_(4).take(-1))
add("take_none", lambda: range_(4).take(0))
add("skip", lambda: range_(10).skip(7))
add("skip_more", lambda: range_(3).skip(7))
add("skip_all", lambda: range_(3).skip(-1))
add("skip_then_take", lambda: range_(10).skip(3).take(4))
add("repeat", lambda: numbers(1, 2, 3).repeat(3))
add("repeat_never", lambda: range_(3).repeat(0))
add("repeat_without_end", lambda: numbers(1, 2).repeat().take(5))
add("repeat_of_nothing", lambda: range_(0).repeat(3))
add("repeat_then_batch", lambda: range_(3).repeat(2).batch(4))
add("batch_then_repeat", lambda: range_(3).batch(4).repeat(2))
add("shard_first", lambda: range_(10).shard(3, 0))
add("shard_last", lambda: range_(10).shard(3, 2))
add("shard_of_few", lambda: range_(2).shard(3, 2))
add("shard_then_batch", lambda: range_(10).shard(2, 1).batch(2))
add("shuffle_of_one", lambda: range_(6).shuffle(1))
add("shuffle", lambda: range_(20).shuffle(5, seed=1), True)
add("shuffle_of_more_than_there_are", lambda: range_(20).shuffle(100, seed=1), True)
add("shuffle_then_repeat", lambda: range_(5).shuffle(5, seed=1).repeat(2), True)
add("prefetch", lambda: range_(5).prefetch(2))
add("prefetch_autotuned", lambda: range_(5).prefetch(tf.data.AUTOTUNE))
add("cache", lambda: range_(3).cache().repeat(2))
add("cache_behind_what_counts", lambda: range_(5).scan(
    np.int64(0), lambda s, x: (s + x, s + x)).cache().repeat(2))
add("cache_then_map", lambda: range_(3).cache().map(lambda x: x * 2).repeat(2))
add("apply", lambda: range_(5).apply(lambda d: d.filter(lambda x: x % 2 == 0)))
add("options", lambda: range_(3).with_options(tf.data.Options()))

# --- Batches ---------------------------------------------------------------------
add("batch", lambda: range_(8).batch(3))
add("batch_drop_remainder", lambda: range_(8).batch(3, drop_remainder=True))
add("batch_exact", lambda: range_(6).batch(3))
add("batch_of_more", lambda: range_(2).batch(3))
add("batch_of_more_dropped", lambda: range_(2).batch(3, drop_remainder=True))
add("batch_of_tuples", lambda: Dataset.zip(range_(5), range_(5, 10)).batch(2))
add("batch_of_batches", lambda: range_(8).batch(2).batch(2))
add("batch_of_strings", lambda: strings("a", "", "ccc").batch(2))
add("batch_of_vectors", lambda: Dataset.from_tensor_slices(i64([1, 2], [3, 4], [5, 6])).batch(2))
add("padded_batch", lambda: vectors(1, 3, 2, 0).padded_batch(2))
add("padded_batch_to_a_size", lambda: vectors(1, 3, 2).padded_batch(2, padded_shapes=[5]))
add("padded_batch_with_a_value", lambda: vectors(1, 3, 2).padded_batch(
    3, padding_values=np.int64(-1)))
add("padded_batch_drop_remainder", lambda: vectors(1, 3, 2).padded_batch(2, drop_remainder=True))
add("padded_batch_of_scalars", lambda: range_(5).padded_batch(2))
add("padded_batch_of_tuples", lambda: Dataset.zip(vectors(1, 3, 2), range_(3)).padded_batch(
    2, padding_values=(np.int64(9), np.int64(0))))
add("padded_batch_of_matrices", lambda: numbers(1, 2, 3).map(
    lambda n: tf.fill([n, 4 - n], n)).padded_batch(3, padded_shapes=[None, None]))
add("padded_batch_of_strings", lambda: numbers(1, 3).map(
    lambda n: tf.fill([n], "s")).padded_batch(2, padding_values="-"))
add("ragged_batch", lambda: vectors(1, 3, 2).ragged_batch(2))
add("ragged_batch_drop_remainder", lambda: vectors(1, 3, 2).ragged_batch(2, drop_remainder=True))
add("ragged_batch_of_scalars", lambda: range_(3).ragged_batch(2))
add("ragged_batch_of_empty", lambda: vectors(0, 0, 1).ragged_batch(3))
add("ragged_batch_of_strings", lambda: numbers(1, 0, 2).map(
    lambda n: tf.fill([n], "s")).ragged_batch(3))
add("unbatch", lambda: range_(7).batch(3).unbatch())
add("unbatch_rows", lambda: Dataset.from_tensors(i64([1, 2], [3, 4])).unbatch())
add("unbatch_of_tuples", lambda: Dataset.zip(range_(5), range_(5, 10)).batch(2).unbatch())
add("unbatch_of_different_sizes", lambda: vectors(2, 0, 1).unbatch())
add("unbatch_then_batch", lambda: range_(7).batch(3).unbatch().batch(2))
add("rebatch_smaller", lambda: range_(8).batch(4).rebatch(2))
add("rebatch_larger", lambda: range_(8).batch(2).rebatch(3))
add("rebatch_uneven", lambda: range_(8).batch(4).rebatch(3))
add("rebatch_drop_remainder", lambda: range_(8).batch(4).rebatch(3, drop_remainder=True))
add("rebatch_to_sizes_in_turn", lambda: range_(8).batch(4).rebatch([2, 1, 1]))
add("rebatch_of_tuples", lambda: Dataset.zip(range_(5), range_(5, 10)).batch(4).rebatch(3))
add("window", lambda: range_(7).window(3).flat_map(lambda w: w.batch(3)))
add("window_drop_remainder", lambda: range_(7).window(3, drop_remainder=True).flat_map(
    lambda w: w.batch(3)))
add("window_shift", lambda: range_(7).window(3, 1, 1, True).flat_map(lambda w: w.batch(3)))
add("window_shift_with_remainder", lambda: range_(5).window(3, 1).flat_map(lambda w: w.batch(3)))
add("window_stride", lambda: range_(7).window(3, 1, 2, True).flat_map(lambda w: w.batch(3)))
add("window_gaps", lambda: range_(10).window(2, shift=4).flat_map(lambda w: w.batch(2)))
add("window_of_tuples", lambda: Dataset.zip(range_(4), range_(4, 8)).window(2).flat_map(
    lambda a, b: Dataset.zip(a.batch(2), b.batch(2))))
add("group_by_window_documented", lambda: range_(10).group_by_window(
    key_func=lambda x: x % 2, reduce_func=lambda key, w: w.batch(5), window_size=5))
add("group_by_window_short", lambda: range_(10).group_by_window(
    key_func=lambda x: x % 3, reduce_func=lambda key, w: w.batch(2), window_size=2))
add("group_by_window_of_one_key", lambda: range_(5).group_by_window(
    key_func=lambda x: x * 0, reduce_func=lambda key, w: w.batch(4), window_size=4))
add("bucket_by_sequence_length", lambda: vectors(1, 5, 2, 3, 9, 1, 4, 2).bucket_by_sequence_length(
    element_length_func=lambda e: tf.shape(e)[0], bucket_boundaries=[3, 5],
    bucket_batch_sizes=[2, 2, 2]))
add("bucket_by_sequence_length_drop_remainder",
    lambda: vectors(1, 5, 2, 3, 9, 1, 4, 2).bucket_by_sequence_length(
        element_length_func=lambda e: tf.shape(e)[0], bucket_boundaries=[3, 5],
        bucket_batch_sizes=[2, 2, 2], drop_remainder=True))
add("bucket_by_sequence_length_to_boundary",
    lambda: vectors(1, 2, 3, 1, 4).bucket_by_sequence_length(
        element_length_func=lambda e: tf.shape(e)[0], bucket_boundaries=[3, 6],
        bucket_batch_sizes=[2, 2, 1], pad_to_bucket_boundary=True))
add("bucket_by_sequence_length_padded_with",
    lambda: vectors(1, 2, 3).bucket_by_sequence_length(
        element_length_func=lambda e: tf.shape(e)[0], bucket_boundaries=[3],
        bucket_batch_sizes=[2, 1], padding_values=np.int64(-1)))

# --- Reduce: one element, the last state ---------------------------------------------
def reduced(dataset, initial, function):
    return Dataset.from_tensors(dataset.reduce(initial, function))


add("reduce_sum", lambda: reduced(range_(5), np.int64(0), lambda s, x: s + x))
add("reduce_of_nothing", lambda: reduced(range_(0), np.int64(7), lambda s, x: s + x))
add("reduce_of_structures", lambda: reduced(
    range_(1, 5), {"count": np.int64(0), "sum": np.float32(0)},
    lambda s, x: {"count": s["count"] + 1, "sum": s["sum"] + tf.cast(x, tf.float32)}))
add("reduce_of_batches", lambda: reduced(
    range_(7).batch(3), np.int64(0), lambda s, x: s + tf.reduce_sum(x)))
add("reduce_strings", lambda: reduced(strings("a", "b", "c"), "", lambda s, x: s + x))
