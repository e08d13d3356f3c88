// SPDX-License-Identifier: Apache-2.0
// A dataset describes what to read. It is an immutable graph of sources and transforms, like
// tf.data's Dataset. Building a dataset reads no data.
//
// A mistake in the graph (a dtype, a shape, an argument) is found when the node is added. status()
// and MakeIterator() report the mistake, with the node and the argument, so calls can be chained
// without checks between them.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/batching.h"
#include "penstock/distribute.h"
#include "penstock/element.h"
#include "penstock/expr.h"
#include "penstock/iterator.h"
#include "penstock/map.h"
#include "penstock/sources.h"
#include "penstock/spec.h"

#pragma GCC visibility push(default)
namespace penstock {

inline constexpr int64_t kAutotune = -1;
inline constexpr int64_t kForever = -1;

struct ListFilesOptions {
  bool shuffle = false;
  std::optional<uint64_t> seed;  // not given: drawn once per job and saved
};
struct InterleaveOptions {
  int64_t cycle_length = 8;  // inputs open at a time
  int64_t block_length = 1;  // consecutive elements from one input
};
struct MapOptions {
  int64_t num_parallel_calls = kAutotune;  // results keep the input's order
};
struct BatchOptions {
  bool drop_remainder = false;
};
struct ShuffleOptions {
  std::optional<uint64_t> seed;
  bool reshuffle_each_iteration = true;  // a new order for each pass and each iterator
};
struct ChooseFromDatasetsOptions {
  bool stop_on_empty_dataset = true;  // end when a chosen dataset has ended; false: skip it
};
struct SampleFromDatasetsOptions {
  std::vector<double> weights;  // ≥ 0, one per dataset; {}: all equal
  std::optional<uint64_t> seed;
  bool stop_on_empty_dataset = false;
  bool rerandomize_each_iteration = false;  // false: all repetitions draw the same sequence
};
struct IgnoreErrorsOptions {
  std::optional<int64_t> max;  // errors to ignore; later ones are returned; not given: no limit
  bool log_warning = false;
};
// Exactly one of `bucket` and `cost` must be given.
struct RoundsOptions {
  std::optional<MapFunction> bucket;  // an int32 or int64 scalar, equal for all elements of a round
  // A finite scalar number ≥ 0: the cost of an element for a trainer. The largest cost of a round
  // is at most (1 + cost_spread) × the smallest.
  std::optional<MapFunction> cost;
  double cost_spread = 0.05;  // in [0.001, 1]
  // In elements, ≥ 0. When more than max_age elements have been read after the oldest waiting
  // element, this element goes into a round with elements of the neighboring buckets. Not given: an
  // element waits until a round is full or the input ends, and a saved position goes back to the
  // oldest waiting element.
  std::optional<int64_t> max_age;
};
struct DatasetOptions {
  std::optional<bool> deterministic;
  std::optional<int64_t> threads;  // how many threads of the process's pool the dataset may use
};

class WindowedDataset;

class Dataset {
 public:
  // A placeholder to assign to: one element with an empty structure.
  Dataset();

  // --- Sources: values -------------------------------------------------------
  // int64 scalars start, start + step, …, up to but excluding stop.
  static Dataset Range(int64_t stop);
  static Dataset Range(int64_t start, int64_t stop, int64_t step = 1);
  // FromTensors yields one element with these values. FromTensorSlices yields one element per row
  // of the first dimension, whose size must be equal for all tensors. `spec` describes the tensors
  // as they are passed. Their values are copied into the definition.
  static Dataset FromTensors(const std::vector<Tensor>& leaves, const Spec& spec);
  static Dataset FromTensorSlices(const std::vector<Tensor>& leaves, const Spec& spec);
  // The same for C++ values: FromTensors(2.0f), FromTensorSlices<int32_t>({1, 2, 3}).
  template <class T>
  static Dataset FromTensors(T value);
  template <class T>
  static Dataset FromTensorSlices(std::vector<T> values);
  // The same for values of the outer element, inside a DatasetFunction.
  static Dataset Range(const Expr& stop);
  static Dataset FromTensors(const Expr& element);
  static Dataset FromTensorSlices(const Expr& element);

  // --- Sources: files ----------------------------------------------------------
  // A file is given by name, or by an element of another dataset:
  // `files.Interleave(ps::Dataset::TFRecord)`. The comments below say what a split of each source
  // is. This matters when the service divides the dataset (DYNAMIC). If a file cannot be read, or a
  // part of it is damaged, an error takes the place of its elements. The error names the file and
  // the place in the file. The options are in penstock/sources.h.
  //
  // The names of the files that match the glob patterns, as scalar strings, sorted or shuffled,
  // each name once. If a pattern matches no file, iteration starts with NotFound.
  template <std::convertible_to<std::string_view> S>
  static Dataset ListFiles(const S& pattern, ListFilesOptions options = {}) {
    return ListFiles(std::vector<std::string>{std::string(std::string_view(pattern))}, options);
  }
  static Dataset ListFiles(std::vector<std::string> patterns, ListFilesOptions options = {});
  // TFRecord(files, RecordOptions): records of TFRecord files as scalar strings. Checks their
  // CRC32C. A split is a file.
  static constexpr TFRecordSource TFRecord{};
  // TextLine(files, RecordOptions): lines of text files as scalar strings, without the line end (\n
  // or \r\n). A split is a file.
  static constexpr TextLineSource TextLine{};
  // Records of `record_bytes` each, as scalar strings. DataLoss if a file does not contain a whole
  // number of records between header and footer. This error comes at once if the file's size is
  // known, and at the end of the file if it is compressed. A split is a file.
  static Dataset FixedLengthRecord(FileNames files, int64_t record_bytes,
                                   FixedLengthRecordOptions options = {});
  // Samples of tar files as WebDataset writes them. A sample is a run of consecutive files whose
  // paths are equal up to the first dot of the last component; the part before that dot is the
  // sample's key. An element is a dict of "__key__" and one scalar string per field. A field is
  // given as an extension, without regard to case ("cls", "seg.png"), or as a list of extensions
  // ("jpg;jpeg;png"). From a list, the first extension that a sample has is used, and the first
  // extension in the list names the field. If a sample lacks a field, NotFound, with the field's
  // name, takes the place of the sample. Reads ustar, pax and GNU archives, also compressed with
  // gzip. A split is a file.
  static Dataset TarShards(FileNames files, std::vector<std::string> fields,
                           TarShardsOptions options = {});
  // Windows of `length` tokens. No window spans two files. A file whose name ends in .npy contains
  // a one-dimensional array. Any other file contains only tokens, little endian. Local files are
  // mapped into memory, so they must not be truncated while they are read.
  //
  // For TokenShards and Npy, a split is a range of elements. File sizes are read when iteration
  // starts. If a file is missing or does not fit the arguments, iteration starts with that error.
  // Skipping elements and restoring positions cost nothing.
  static Dataset TokenShards(FileNames files, int64_t length, TokenShardsOptions options = {});
  // Arrays saved by NumPy. `spec` describes an element. If it is a leaf, the files are .npy. If it
  // is a dict, the files are .npz, and the members whose names are its keys are read. An element is
  // one row of the first dimension (of all members together), or the whole file if `rows` is false.
  // The arrays must fit `spec`: the same dtype, a shape that it admits, C order, little endian. For
  // .npz, the current file is held in memory, its checksums are checked, and a split is a file.
  static Dataset Npy(FileNames files, const Spec& spec, NpyOptions options = {});
  // Rows of Parquet files, as dicts of the columns that `columns` names. Each column becomes a
  // scalar of its own type, a string (from string and binary columns), or a vector (from lists of
  // numbers). If a row has a null, InvalidArgument takes the place of the row, unless the leaf is
  // optional. The current row group is held in memory. A split is one or more row groups.
  // Unimplemented in a program built without Arrow.
  static Dataset Parquet(FileNames files, const Spec& columns);
  // {"image": contents of the file, "label": int64, "path": its name} for each image file (.jpg
  // .jpeg .png .bmp .gif .webp .tif .tiff .ppm .pgm) in the subdirectories of `root`, in the order
  // of their names. The label is the index of the subdirectory among the subdirectories that
  // contain images, sorted by name. NotFound if no subdirectory contains images. A split is a range
  // of files, or one file if shuffled.
  static Dataset ImageDirectory(const std::string& root, ImageDirectoryOptions options = {});

  // --- Transforms ----------------------------------------------------------
  // `fn` is a lambda over Expr, an Expr function or a MapChain (penstock/map.h).
  Dataset Map(MapFunction fn, MapOptions options = {}) const;
  Dataset Filter(MapFunction predicate) const;  // keeps elements for which it is true
  // `fn` returns a dataset for each element. FlatMap reads these datasets one after another;
  // Interleave reads `cycle_length` of them at a time.
  Dataset FlatMap(DatasetFunction fn) const;
  Dataset Interleave(DatasetFunction fn, InterleaveOptions options = {}) const;
  Dataset Batch(int64_t batch_size, BatchOptions options = {}) const;
  // Batches tensors of different shapes as ragged tensors.
  Dataset RaggedBatch(int64_t batch_size, BatchOptions options = {}) const;
  // Batches tensors of different shapes, padded to one shape (penstock/batching.h). If an element
  // is larger than the padded shape, an error that names the component and the shapes takes the
  // place of the batch.
  Dataset PaddedBatch(int64_t batch_size, PaddedBatchOptions options = {}) const;
  // Yields the rows of each element, one after another: the inverse of Batch.
  Dataset Unbatch() const;
  // Makes batches of a different size, like Unbatch().Batch(batch_size), but without splitting
  // batches into single rows. If several sizes are given, they are used in rotation. A batch of
  // size 0 has no rows.
  Dataset Rebatch(int64_t batch_size, BatchOptions options = {}) const;
  Dataset Rebatch(std::vector<int64_t> batch_sizes, BatchOptions options = {}) const;
  // Makes padded batches of elements of similar length. Bucket i takes lengths in
  // [bucket_boundaries[i - 1], bucket_boundaries[i]) and makes batches of bucket_batch_sizes[i]
  // elements. There is one more batch size than boundaries. `element_length` returns an int32 or
  // int64 scalar.
  Dataset BucketBySequenceLength(MapFunction element_length, std::vector<int64_t> bucket_boundaries,
                                 std::vector<int64_t> bucket_batch_sizes,
                                 BucketBySequenceLengthOptions options = {}) const;
  // Window makes windows of `size` elements; windows may overlap. GroupByWindow makes windows of
  // `window_size` elements that have the same key (an int32 or int64 scalar). A method of
  // WindowedDataset turns each window into elements.
  WindowedDataset Window(int64_t size, WindowOptions options = {}) const;
  WindowedDataset GroupByWindow(MapFunction key, int64_t window_size,
                                GroupByWindowOptions options = {}) const;
  // Reorders elements for coordinated reads. Each round is `num_consumers` consecutive elements of
  // one bucket or of about the same cost, so that no trainer waits for a longer batch of another
  // trainer. Put this node last before Distribute. An error takes the place of an element in the
  // next round. At the end of the input, the remaining elements are sorted by bucket or cost, and
  // neighbors form rounds. CoordinatedRounds::remainder_policy determines what happens to elements
  // that fill no round. Holds fewer than `num_consumers` elements of each bucket.
  Dataset Rounds(int64_t num_consumers, RoundsOptions options) const;
  // Packs dense sequences, along their first dimension, one after another into rows of a fixed
  // length. Elements are dicts of features. A feature x becomes x, x_segment_ids (from 1; 0 is
  // padding) and x_positions (from 0 in each segment), both int32. All features of one element are
  // in the same row, with the same segment id.
  Dataset Pack(int64_t length, PackOptions options = {}) const;
  Dataset Pack(PackLengths lengths, PackOptions options = {}) const;
  Dataset Shuffle(int64_t buffer_size, ShuffleOptions options = {}) const;
  Dataset Repeat(int64_t count = kForever) const;
  Dataset Take(int64_t count) const;
  Dataset Skip(int64_t count) const;
  Dataset Shard(int64_t num_shards, int64_t index) const;
  Dataset Concatenate(const Dataset& other) const;
  Dataset Enumerate(int64_t start = 0) const;  // (int64 scalar, element)
  Dataset Prefetch(int64_t buffer_size = kAutotune) const;
  Dataset WithOptions(DatasetOptions options) const;
  static Dataset Zip(std::vector<Dataset> datasets);  // tuples; ends with the shortest dataset
  // Each int64 scalar of `choice_dataset` is the index in `datasets` of the dataset that yields the
  // next element. All datasets must have the same structure. If an index is out of range,
  // InvalidArgument takes the place of the element. Ends when `choice_dataset` or all datasets have
  // ended. On workers, every partition reads all of `choice_dataset` but only its own part of the
  // datasets.
  static Dataset ChooseFromDatasets(std::vector<Dataset> datasets, const Dataset& choice_dataset,
                                    ChooseFromDatasetsOptions options = {});
  // The same, but each dataset is drawn at random, by weight, from the datasets that have not
  // ended.
  static Dataset SampleFromDatasets(std::vector<Dataset> datasets,
                                    SampleFromDatasetsOptions options = {});
  // `scan_func` takes (state, element) and returns Tuple({new state, output}). The state starts as
  // the constants `initial_state`. Each partition has its own state. An error leaves the state
  // unchanged. A saved position contains the state's values, so these are limited to 64 KiB. If a
  // new state is larger, ResourceExhausted takes the place of the output.
  Dataset Scan(const Expr& initial_state, StateFunction scan_func) const;
  // Yields the elements before the first element for which `predicate`, a scalar bool, is false.
  Dataset TakeWhile(MapFunction predicate) const;
  // Reads the input once, in its first repetition. Later repetitions, and later iterators over the
  // same Dataset in this process, read the elements from memory. Cached elements are read-only, and
  // live as long as the Dataset. A pass that is not read to its end, or that contains an error, is
  // not cached: the next pass reads the input again. An iterator that is restored in a process
  // without the cached elements also reads the input again. Each partition caches its own part.
  // InvalidArgument after Distribute.
  Dataset Cache() const;
  // Caches the elements in a file, which other iterators and programs can use too. The file appears
  // under its name only when it is complete. If the dataset is read in process, an existing file is
  // used no matter with which seed it was written. A state that was saved while a file was read can
  // be restored only with that file.
  //
  // On workers, partition n uses its own file, `path`.partition-n. It uses an existing file only if
  // the same partition wrote it with the same seed and splits, so that each element is still
  // delivered exactly once. Splits that are given out on demand rarely match; splits of fixed
  // shards or of a deterministic order always match. In mode DATA, which divides one order that is
  // the same for all shards, each shard uses `path` itself, but only if the file was written with
  // the same seed.
  //
  // FailedPrecondition, with the file's name, if the file is damaged or belongs to a different
  // dataset. If you remove the file, it is written again.
  Dataset Cache(std::string path) const;
  // Skips errors in the data, and counts them in the metric penstock_errors_ignored_total.
  // Temporary errors and errors of the machine are still returned: Cancelled, lost sessions and
  // damaged caches (FailedPrecondition), files and machines that cannot be reached (Unavailable,
  // DeadlineExceeded, PermissionDenied, …), and lack of memory.
  Dataset IgnoreErrors(IgnoreErrorsOptions options = {}) const;
  // Returns fn(*this), so that a function from dataset to dataset fits into a chain.
  template <std::invocable<const Dataset&> F>
  auto Apply(F&& fn) const {
    return std::forward<F>(fn)(*this);
  }
  // Map with ParseExampleProto of penstock/map.h.
  Dataset ParseExample(std::vector<std::pair<std::string, TensorSpec>> features) const;

  // Nodes before this one run on the workers of `options.service`; nodes after it run in this
  // process (penstock/distribute.h).
  Dataset Distribute(DistributeOptions options) const;

  // --- Properties ----------------------------------------------------------
  const absl::Status& status() const;  // the first mistake in the graph
  const Spec& element_spec() const;    // REQUIRES: status().ok()
  Cardinality cardinality() const;
  uint64_t fingerprint() const;  // equal for equal definitions, on every machine
  std::string Explain() const;   // the tree of nodes, with specs

  absl::StatusOr<Iterator> MakeIterator(IteratorOptions options = {}) const;
  // Returns a range for loops: for (absl::StatusOr<Element>& element : dataset.Elements()). If the
  // iterator cannot be made, the first value of the range is the error.
  ElementRange Elements(IteratorOptions options = {}) const;

  // Reads the whole dataset in this process and returns the last state. The state starts as the
  // constants `initial_state`. `reduce_func` takes (state, element) and returns the new state.
  // Stops at the first error and returns it; the error names its element. InvalidArgument for an
  // infinite dataset.
  absl::StatusOr<Element> Reduce(const Expr& initial_state, StateFunction reduce_func,
                                 IteratorOptions options = {}) const;

  struct Node;  // dataplane/dataset/graph/graph.h

 private:
  friend class DatasetAccess;  // dataplane/dataset/graph/graph.h
  explicit Dataset(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  // One element with the first value, or (`slices`) one per value.
  static Dataset FromStrings(const std::vector<std::string_view>& values, bool slices);

  std::shared_ptr<const Node> node_;
};

// Windows that are not elements yet (Dataset::Window, GroupByWindow):
// `dataset.Window(5, {.shift = 1}).Batch()`. In tf.data a window is an element that is itself a
// dataset. Here no element is a dataset, so one of these methods must turn windows into elements.
class WindowedDataset {
 public:
  // Turn each window into one element, in which the window's elements are stacked, padded, ragged,
  // or packed into a batch of as few rows as first-fit finds (see Dataset::Pack).
  Dataset Batch() const;
  Dataset PaddedBatch(Padding padding = {}) const;
  Dataset RaggedBatch() const;
  Dataset Pack(int64_t length, PackOptions options = {}) const;
  Dataset Pack(PackLengths lengths, PackOptions options = {}) const;
  // `fn` takes each window as a dataset of the window's elements, and returns a dataset. The
  // returned datasets are read one after another. Components with more than one unknown dimension
  // are passed as ragged tensors.
  Dataset FlatMap(std::function<Dataset(const Dataset& window)> fn) const;

  struct Windows;  // dataplane/dataset/transforms/window/windowed_dataset.h

 private:
  friend class Dataset;
  explicit WindowedDataset(std::shared_ptr<const Windows> windows) : windows_(std::move(windows)) {}
  std::shared_ptr<const Windows> windows_;
};

template <class T>
Dataset Dataset::FromTensors(T value) {
  if constexpr (std::is_convertible_v<T, std::string_view>) {
    return FromStrings({std::string_view(value)}, false);
  } else {
    return FromTensors({Tensor(DTypeOf<T>, {}, &value)}, Scalar(DTypeOf<T>));
  }
}

template <class T>
Dataset Dataset::FromTensorSlices(std::vector<T> values) {
  if constexpr (std::is_convertible_v<T, std::string_view>) {
    return FromStrings({values.begin(), values.end()}, true);
  } else {
    const auto copy = std::make_unique<T[]>(values.size());  // std::vector<bool> has no data()
    std::copy(values.begin(), values.end(), copy.get());
    const int64_t dims[] = {static_cast<int64_t>(values.size())};
    return FromTensorSlices({Tensor(DTypeOf<T>, dims, copy.get())},
                            Dense(DTypeOf<T>, Shape({dims[0]})));
  }
}

}  // namespace penstock
#pragma GCC visibility pop
