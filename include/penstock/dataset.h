// SPDX-License-Identifier: Apache-2.0
// What to read: an immutable graph of sources and transforms, as tf.data's
// Dataset. Building one reads no data.
//
// A mistake in the graph (a dtype, a shape, an argument) is found when the node
// is added and reported by status() and MakeIterator(), naming node and
// argument; the methods below can so be chained without checks between them.
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
#include "penstock/spec.h"

namespace penstock {

inline constexpr int64_t kAutotune = -1;
inline constexpr int64_t kForever = -1;

struct ListFilesOptions {
  bool shuffle = false;
  std::optional<uint64_t> seed;  // not given: drawn once for the job, and kept
};
struct InterleaveOptions {
  int64_t cycle_length = 8;  // inputs open at a time
  int64_t block_length = 1;  // elements in a row from one of them
};
struct MapOptions {
  int64_t num_parallel_calls = kAutotune;  // results keep the input's order
};
struct BatchOptions {
  bool drop_remainder = false;
};
struct ShuffleOptions {
  std::optional<uint64_t> seed;
  bool reshuffle_each_iteration = true;  // in each pass, and in each iterator over a Dataset
};
struct ChooseFromDatasetsOptions {
  bool stop_on_empty_dataset = true;  // end where a dataset chosen has; false: pass over it
};
struct SampleFromDatasetsOptions {
  std::vector<double> weights;  // ≥ 0, one for each dataset; {}: all alike
  std::optional<uint64_t> seed;
  bool stop_on_empty_dataset = false;
  bool rerandomize_each_iteration = false;  // false: each repetition draws the same
};
struct IgnoreErrorsOptions {
  std::optional<int64_t> max;  // further errors stand at their places; not given: no bound
  bool log_warning = false;
};
// One of `bucket` and `cost`.
struct RoundsOptions {
  std::optional<MapFunction> bucket;  // an int32 or int64 scalar, equal for all of a round
  // A scalar number ≥ 0: what an element costs a trainer, as it is in the element.
  // The largest of a round is at most (1 + cost_spread) × the smallest.
  std::optional<MapFunction> cost;
  double cost_spread = 0.05;  // in [0.001, 1]
  // An element that so many others were read behind goes into a round with those
  // of the buckets next to its own. Not given: it waits until a round is full or
  // the input ends, and a saved position is as far back as the oldest that waits.
  std::optional<int64_t> max_age;
};
struct DatasetOptions {
  std::optional<bool> deterministic;
  std::optional<int64_t> threads;  // of the process's pool that this dataset may use
};

class WindowedDataset;

class Dataset {
 public:
  // A dataset of one element with an empty structure; assign over it.
  Dataset();

  // --- Sources; those of files' contents are in penstock/sources.h -----------
  // int64 scalars start, start + step, … below (above, for step < 0) stop.
  static Dataset Range(int64_t stop);
  static Dataset Range(int64_t start, int64_t stop, int64_t step = 1);
  // One element with these values; or one per row of their first dimension,
  // which must be equal. `spec` is that of the tensors as given, which are
  // copied into the definition.
  static Dataset FromTensors(const std::vector<Tensor>& leaves, const Spec& spec);
  static Dataset FromTensorSlices(const std::vector<Tensor>& leaves, const Spec& spec);
  // The same for values at hand: FromTensors(2.0f), FromTensorSlices<int32_t>({1, 2, 3}).
  template <class T>
  static Dataset FromTensors(T value);
  template <class T>
  static Dataset FromTensorSlices(std::vector<T> values);
  // File names (strings) that match a glob pattern, in sorted order or
  // shuffled. NotFound, when iteration starts, if nothing matches.
  template <std::convertible_to<std::string_view> S>
  static Dataset ListFiles(const S& pattern, ListFilesOptions options = {}) {
    return ListFiles(std::vector<std::string>{std::string(std::string_view(pattern))}, options);
  }
  static Dataset ListFiles(std::vector<std::string> patterns, ListFilesOptions options = {});

  // --- Transforms ----------------------------------------------------------
  // `fn`: a lambda over Expr, an Expr function, or a MapOps chain (penstock/map.h).
  Dataset Map(MapFunction fn, MapOptions options = {}) const;
  Dataset Filter(MapFunction predicate) const;  // keeps elements where the scalar bool is true
  // `fn` gives a dataset for each element; they are read one after the other,
  // or `cycle_length` at a time.
  Dataset FlatMap(DatasetFunction fn) const;
  Dataset Interleave(DatasetFunction fn, InterleaveOptions options = {}) const;
  Dataset Batch(int64_t batch_size, BatchOptions options = {}) const;
  // Batches of tensors whose shapes differ, as ragged tensors.
  Dataset RaggedBatch(int64_t batch_size, BatchOptions options = {}) const;
  // Batches of tensors whose shapes differ, padded to one shape
  // (penstock/batching.h). An element larger than its padded shape makes its
  // batch an error that names component and shapes.
  Dataset PaddedBatch(int64_t batch_size, PaddedBatchOptions options = {}) const;
  // The rows of each element, one after the other: Batch undone.
  Dataset Unbatch() const;
  // Batches of another size: Unbatch().Batch(batch_size) without taking rows
  // apart. Sizes of a list take turns; a batch of size 0 has no rows.
  Dataset Rebatch(int64_t batch_size, BatchOptions options = {}) const;
  Dataset Rebatch(std::vector<int64_t> batch_sizes, BatchOptions options = {}) const;
  // Batches of elements of like length, padded: bucket i takes the lengths of
  // [bucket_boundaries[i - 1], bucket_boundaries[i]) and batches of
  // bucket_batch_sizes[i], of which there is one more than boundaries.
  // `element_length` gives an int32 or int64 scalar.
  Dataset BucketBySequenceLength(MapFunction element_length, std::vector<int64_t> bucket_boundaries,
                                 std::vector<int64_t> bucket_batch_sizes,
                                 BucketBySequenceLengthOptions options = {}) const;
  // Windows of `size` elements, which may overlap; of `window_size` elements
  // with one key (an int32 or int64 scalar). What a window becomes is said by
  // the WindowedDataset's methods.
  WindowedDataset Window(int64_t size, WindowOptions options = {}) const;
  WindowedDataset GroupByWindow(MapFunction key, int64_t window_size,
                                GroupByWindowOptions options = {}) const;
  // The same elements in another order, for coordinated reads of `num_consumers`
  // consumers: the rounds, as many elements in a row, are each of one bucket or of
  // about the same cost, so that no trainer waits for another's longer batch. To
  // stand last before Distribute. An error takes an element's place in the next
  // round. At the end of the input the rest comes by bucket, or by cost, in
  // rounds of neighbours; what fills no round is for DistributeOptions::rests.
  // Keeps less than `num_consumers` elements of each bucket.
  Dataset Rounds(int64_t num_consumers, RoundsOptions options) const;
  // Sequences (dense, along their first dimension) one behind the other in rows
  // of a fixed length. Elements are dicts of features; a feature x becomes x,
  // x_segment_ids (from 1; 0 is padding) and x_positions (from 0 in each
  // segment), both int32. The features of an element lie in the same row under
  // the same id.
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
  static Dataset Zip(std::vector<Dataset> datasets);  // tuples; ends with the shortest
  // An element of one of `datasets`, which all have one structure, for each int64
  // scalar of `choice_dataset`: its index there. An index that is none is
  // InvalidArgument at its place. Ends with the choice, or when all datasets
  // have ended. With workers every partition reads the whole choice, and its
  // own part of the datasets.
  static Dataset ChooseFromDatasets(std::vector<Dataset> datasets, const Dataset& choice_dataset,
                                    ChooseFromDatasetsOptions options = {});
  // The same, with datasets drawn at random by weight among those that go on.
  static Dataset SampleFromDatasets(std::vector<Dataset> datasets,
                                    SampleFromDatasetsOptions options = {});
  // `scan_func` takes (state, element) and gives Tuple({new state, output}). The
  // state begins as the constants `initial_state`; each partition has its own.
  // Where there is an error, the state stays as it was. A saved position holds
  // the state's values, so they may take at most 64 KiB: an output whose new
  // state is larger is ResourceExhausted.
  Dataset Scan(const Expr& initial_state, StateFunction scan_func) const;
  // Elements before the first for which the scalar bool is false.
  Dataset TakeWhile(MapFunction predicate) const;
  // Reads the input once, as its first repetition gives it, and from memory in
  // repetitions, and iterators over one Dataset in one process, behind that; read-only,
  // kept as long as the Dataset. What was not read to its end, or with an error in it, is
  // not kept: the next reads the input again, as does an iterator that is restored where
  // nothing is kept. Each partition keeps its own part. Not behind Distribute.
  Dataset Cache() const;
  // The same on disk, for other iterators and programs too. The file appears
  // under its name when it is whole. In process, one that is there is used
  // whatever the seed it was written under; a state saved while reading it needs
  // that one. Partition n has a file of its own, `path`.partition-n, and
  // uses it only if it was written by the same partition with the same seed and
  // splits, so that elements stay exactly once: splits dealt by demand hardly
  // are, those of fixed shards or of deterministic order always. In mode DATA,
  // which divides the order that all shards draw alike, each shard uses `path`
  // itself, and only if it was written with the same seed.
  // FailedPrecondition for a file of another dataset, or damaged, naming it:
  // remove it, and it is made again.
  Dataset Cache(std::string path) const;
  // Passes over errors that lie in the data, each counted in the metric
  // penstock_errors_ignored_total. Those of the moment stay: Cancelled, lost
  // sessions and damaged caches (FailedPrecondition), files and machines out of
  // reach (Unavailable, DeadlineExceeded, PermissionDenied …), no memory.
  Dataset IgnoreErrors(IgnoreErrorsOptions options = {}) const;
  // fn(*this), so that a function from dataset to dataset stands in a chain.
  template <std::invocable<const Dataset&> F>
  auto Apply(F&& fn) const {
    return std::forward<F>(fn)(*this);
  }
  // Chains read well: MapOps of penstock/map.h as methods of a dataset.
  Dataset ParseExample(std::vector<std::pair<std::string, TensorSpec>> features) const;

  // What stands before runs on the workers of `options.service`, what stands
  // after in this process (penstock/distribute.h).
  Dataset Distribute(DistributeOptions options) const;

  // --- Questions -----------------------------------------------------------
  const absl::Status& status() const;  // the first mistake made in building it
  const Spec& element_spec() const;    // REQUIRES: status().ok()
  Cardinality cardinality() const;
  uint64_t fingerprint() const;  // equal for equal definitions, on every machine
  std::string Explain() const;   // the tree of nodes, with specs

  absl::StatusOr<Iterator> MakeIterator(IteratorOptions options = {}) const;
  // for (absl::StatusOr<Element>& element : dataset.Elements()) …; a failure to
  // make the iterator is the first thing it yields.
  ElementRange Elements(IteratorOptions options = {}) const;

  // Reads everything: the last state, which begins as the constants
  // `initial_state`; `reduce_func` takes (state, element) and gives the new one.
  // The first error, naming the element. InvalidArgument for a dataset without end.
  absl::StatusOr<Element> Reduce(const Expr& initial_state, StateFunction reduce_func,
                                 IteratorOptions options = {}) const;

  struct Node;  // dataplane/dataset/graph.h
  explicit Dataset(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  const std::shared_ptr<const Node>& node() const { return node_; }

 private:
  // One element, which is the first value, or (`slices`) one for each.
  static Dataset FromStrings(const std::vector<std::string_view>& values, bool slices);

  std::shared_ptr<const Node> node_;
};

// Windows that are still to become elements (Dataset::Window, GroupByWindow):
// `dataset.Window(5, {.shift = 1}).Batch()`. tf.data's window is an element that
// is a dataset; here a window never travels, so what it becomes is said at once.
class WindowedDataset {
 public:
  // Each window as one element: its elements stacked, padded, ragged, or packed
  // into as few rows as first-fit finds (a batch of rows; see Dataset::Pack).
  Dataset Batch() const;
  Dataset PaddedBatch(Padding padding = {}) const;
  Dataset RaggedBatch() const;
  Dataset Pack(int64_t length, PackOptions options = {}) const;
  Dataset Pack(PackLengths lengths, PackOptions options = {}) const;
  // What `fn` makes of each window, a dataset of its elements, one after the
  // other. Components of more than one unknown dimension come as ragged tensors.
  Dataset FlatMap(std::function<Dataset(const Dataset& window)> fn) const;

  struct Windows;  // dataplane/dataset/transforms/windowed_dataset.h
  explicit WindowedDataset(std::shared_ptr<const Windows> windows) : windows_(std::move(windows)) {}

 private:
  std::shared_ptr<const Windows> windows_;
};

// A dataset inside a DatasetFunction, from values of the outer element.
Dataset RangeOf(const Expr& stop);
Dataset TensorsOf(const Expr& element);
Dataset TensorSlicesOf(const Expr& element);

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
