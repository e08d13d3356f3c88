// SPDX-License-Identifier: Apache-2.0
#include "python/core/datasets.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/dataset.h"
#include "penstock/explain.h"
#include "penstock/sources.h"
#include "python/core/casters.h"
#include "python/core/errors.h"
#include "python/core/expressions.h"
#include "python/core/iterators.h"
#include "python/core/service.h"
#include "python/core/tensors.h"
#include "python/core/values.h"
#include "python/core/without_gil.h"

namespace penstock::python {

namespace py = pybind11;
using py::arg;

namespace {

Dataset CheckedDataset(Dataset dataset) {
  RaiseIfError(dataset.status());
  return dataset;
}

// Functions are called while the dataset is built, with the GIL held. Their exceptions propagate to
// the Python caller.
MapFunction Traced(py::function function) {
  return [function](const Expr& x) { return function(x).cast<Expr>(); };
}
DatasetFunction TracedDataset(py::function function) {
  return [function](const Expr& x) { return function(x).cast<Dataset>(); };
}
StateFunction TracedState(py::function function) {
  return [function](const Expr& state, const Expr& x) { return function(state, x).cast<Expr>(); };
}

PaddingValue PaddingValueFrom(py::handle value) {
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::int_>(value)) return value.cast<int64_t>();
  if (py::isinstance<py::float_>(value)) return value.cast<double>();
  return value.cast<std::string>();
}

using NamedShapes = std::vector<std::pair<std::string, Shape>>;
using NamedValues = std::vector<std::pair<std::string, py::object>>;

PaddingValues PaddingValuesFrom(const NamedValues& values) {
  PaddingValues padding;
  for (const auto& [name, value] : values) padding.emplace_back(name, PaddingValueFrom(value));
  return padding;
}

FileNames FileNamesFrom(const py::object& names) {
  if (py::isinstance<Expr>(names)) return FileNames(names.cast<Expr>());
  return FileNames(names.cast<std::vector<std::string>>());
}

Compression CompressionFrom(const std::string& name) {
  if (name.empty()) return Compression::kNone;
  if (name == "GZIP") return Compression::kGzip;
  if (name == "ZLIB") return Compression::kZlib;
  throw py::value_error("unknown compression_type '" + name + "'; use '', 'GZIP' or 'ZLIB'");
}

// --- Sources ---------------------------------------------------------------------

using GivenLeaves = std::vector<std::tuple<DType, std::vector<int64_t>, py::object>>;

Dataset FromValues(Dataset (*make)(const std::vector<Tensor>&, const Spec&),
                   const GivenLeaves& leaves, const Spec& spec) {
  std::vector<std::unique_ptr<Values>> values;
  std::vector<Tensor> tensors;
  for (const auto& [dtype, dims, data] : leaves) {
    values.push_back(std::make_unique<Values>(dtype, dims, data));
    tensors.push_back(values.back()->tensor());
  }
  return CheckedDataset(make(tensors, spec));
}

void BindSources(py::class_<Dataset>& dataset) {
  dataset.def_static("range", [](int64_t start, int64_t stop, int64_t step) {
    return CheckedDataset(Dataset::Range(start, stop, step));
  });
  dataset.def_static("range_of",
                     [](const Expr& stop) { return CheckedDataset(Dataset::Range(stop)); });
  dataset.def_static("from_tensors", [](const GivenLeaves& leaves, const Spec& spec) {
    return FromValues(Dataset::FromTensors, leaves, spec);
  });
  dataset.def_static("from_tensor_slices", [](const GivenLeaves& leaves, const Spec& spec) {
    return FromValues(Dataset::FromTensorSlices, leaves, spec);
  });
  dataset.def_static("tensors_of",
                     [](const Expr& x) { return CheckedDataset(Dataset::FromTensors(x)); });
  dataset.def_static("tensor_slices_of",
                     [](const Expr& x) { return CheckedDataset(Dataset::FromTensorSlices(x)); });
  dataset.def_static("list_files", [](std::vector<std::string> patterns, bool shuffle,
                                      std::optional<uint64_t> seed) {
    return CheckedDataset(
        Dataset::ListFiles(std::move(patterns), {.shuffle = shuffle, .seed = seed}));
  });
  dataset.def_static("tfrecord", [](const py::object& names, const std::string& compression) {
    return CheckedDataset(
        Dataset::TFRecord(FileNamesFrom(names), {.compression = CompressionFrom(compression)}));
  });
  dataset.def_static("text_line", [](const py::object& names, const std::string& compression) {
    return CheckedDataset(
        Dataset::TextLine(FileNamesFrom(names), {.compression = CompressionFrom(compression)}));
  });
  dataset.def_static(
      "fixed_length_record", [](const py::object& names, int64_t record_bytes, int64_t header_bytes,
                                int64_t footer_bytes, const std::string& compression) {
        return CheckedDataset(
            Dataset::FixedLengthRecord(FileNamesFrom(names), record_bytes,
                                       {.header_bytes = header_bytes,
                                        .footer_bytes = footer_bytes,
                                        .compression = CompressionFrom(compression)}));
      });
  dataset.def_static("tar_shards", [](const py::object& names, std::vector<std::string> fields,
                                      bool url, bool skip_incomplete) {
    return CheckedDataset(Dataset::TarShards(FileNamesFrom(names), std::move(fields),
                                             {.url = url, .skip_incomplete = skip_incomplete}));
  });
  dataset.def_static("token_shards", [](const py::object& names, int64_t length, DType dtype,
                                        std::optional<int64_t> stride, bool with_next_token,
                                        bool drop_remainder, int64_t header_bytes) {
    return CheckedDataset(Dataset::TokenShards(FileNamesFrom(names), length,
                                               {.dtype = dtype,
                                                .stride = stride,
                                                .with_next_token = with_next_token,
                                                .drop_remainder = drop_remainder,
                                                .header_bytes = header_bytes}));
  });
  dataset.def_static("npy", [](const py::object& names, const Spec& spec, bool rows) {
    return CheckedDataset(Dataset::Npy(FileNamesFrom(names), spec, {.rows = rows}));
  });
  dataset.def_static("parquet", [](const py::object& names, const Spec& columns) {
    return CheckedDataset(Dataset::Parquet(FileNamesFrom(names), columns));
  });
  dataset.def_static(
      "image_directory", [](const std::string& root, bool shuffle, std::optional<uint64_t> seed) {
        return CheckedDataset(Dataset::ImageDirectory(root, {.shuffle = shuffle, .seed = seed}));
      });
}

// --- Transforms ------------------------------------------------------------------

void BindElementwise(py::class_<Dataset>& dataset) {
  dataset.def("map", [](const Dataset& self, py::function function, int64_t num_parallel_calls) {
    return CheckedDataset(self.Map(Traced(function), {.num_parallel_calls = num_parallel_calls}));
  });
  dataset.def("filter", [](const Dataset& self, py::function predicate) {
    return CheckedDataset(self.Filter(Traced(predicate)));
  });
  dataset.def("take_while", [](const Dataset& self, py::function predicate) {
    return CheckedDataset(self.TakeWhile(Traced(predicate)));
  });
  dataset.def("flat_map", [](const Dataset& self, py::function function) {
    return CheckedDataset(self.FlatMap(TracedDataset(function)));
  });
  dataset.def("interleave", [](const Dataset& self, py::function function, int64_t cycle_length,
                               int64_t block_length) {
    return CheckedDataset(self.Interleave(
        TracedDataset(function), {.cycle_length = cycle_length, .block_length = block_length}));
  });
  dataset.def("scan", [](const Dataset& self, const Expr& initial, py::function function) {
    return CheckedDataset(self.Scan(initial, TracedState(function)));
  });
  dataset.def("enumerate", [](const Dataset& self, int64_t start) {
    return CheckedDataset(self.Enumerate(start));
  });
  dataset.def("ignore_errors", [](const Dataset& self, std::optional<int64_t> max, bool log) {
    return CheckedDataset(self.IgnoreErrors({.max = max, .log_warning = log}));
  });
}

void BindBatching(py::class_<Dataset>& dataset) {
  dataset.def("batch", [](const Dataset& self, int64_t size, bool drop_remainder) {
    return CheckedDataset(self.Batch(size, {.drop_remainder = drop_remainder}));
  });
  dataset.def("ragged_batch", [](const Dataset& self, int64_t size, bool drop_remainder) {
    return CheckedDataset(self.RaggedBatch(size, {.drop_remainder = drop_remainder}));
  });
  dataset.def("padded_batch", [](const Dataset& self, int64_t size, NamedShapes shapes,
                                 const NamedValues& values, bool drop_remainder) {
    return CheckedDataset(self.PaddedBatch(size, {.padded_shapes = std::move(shapes),
                                                  .padding_values = PaddingValuesFrom(values),
                                                  .drop_remainder = drop_remainder}));
  });
  dataset.def("unbatch", [](const Dataset& self) { return CheckedDataset(self.Unbatch()); });
  dataset.def("rebatch", [](const Dataset& self, std::vector<int64_t> sizes, bool drop_remainder) {
    return CheckedDataset(self.Rebatch(std::move(sizes), {.drop_remainder = drop_remainder}));
  });
  dataset.def("bucket_by_sequence_length",
              [](const Dataset& self, py::function length, std::vector<int64_t> boundaries,
                 std::vector<int64_t> batch_sizes, NamedShapes shapes, const NamedValues& values,
                 bool pad_to_bucket_boundary, bool no_padding, bool drop_remainder,
                 std::optional<int64_t> max_age) {
                return CheckedDataset(self.BucketBySequenceLength(
                    Traced(length), std::move(boundaries), std::move(batch_sizes),
                    {.padded_shapes = std::move(shapes),
                     .padding_values = PaddingValuesFrom(values),
                     .pad_to_bucket_boundary = pad_to_bucket_boundary,
                     .no_padding = no_padding,
                     .drop_remainder = drop_remainder,
                     .max_age = max_age}));
              });
  dataset.def("window", [](const Dataset& self, int64_t size, std::optional<int64_t> shift,
                           int64_t stride, bool drop_remainder) {
    return self.Window(size, {.shift = shift, .stride = stride, .drop_remainder = drop_remainder});
  });
  dataset.def("group_by_window", [](const Dataset& self, py::function key, int64_t size,
                                    std::optional<int64_t> max_age) {
    return self.GroupByWindow(Traced(key), size, {.max_age = max_age});
  });
  dataset.def("rounds", [](const Dataset& self, int64_t num_consumers,
                           std::optional<py::function> bucket, std::optional<py::function> cost,
                           double cost_spread, std::optional<int64_t> max_age) {
    RoundsOptions options{.cost_spread = cost_spread, .max_age = max_age};
    if (bucket.has_value()) options.bucket = Traced(*bucket);
    if (cost.has_value()) options.cost = Traced(*cost);
    return CheckedDataset(self.Rounds(num_consumers, std::move(options)));
  });
}

void BindOrder(py::class_<Dataset>& dataset) {
  dataset.def("shuffle", [](const Dataset& self, int64_t buffer_size, std::optional<uint64_t> seed,
                            bool reshuffle) {
    return CheckedDataset(
        self.Shuffle(buffer_size, {.seed = seed, .reshuffle_each_iteration = reshuffle}));
  });
  dataset.def("repeat", [](const Dataset& self, int64_t count) {
    return CheckedDataset(self.Repeat(count));
  });
  dataset.def("take",
              [](const Dataset& self, int64_t count) { return CheckedDataset(self.Take(count)); });
  dataset.def("skip",
              [](const Dataset& self, int64_t count) { return CheckedDataset(self.Skip(count)); });
  dataset.def("shard", [](const Dataset& self, int64_t num_shards, int64_t index) {
    return CheckedDataset(self.Shard(num_shards, index));
  });
  dataset.def("concatenate", [](const Dataset& self, const Dataset& other) {
    return CheckedDataset(self.Concatenate(other));
  });
  dataset.def_static("zip", [](std::vector<Dataset> datasets) {
    return CheckedDataset(Dataset::Zip(std::move(datasets)));
  });
  dataset.def_static("choose_from_datasets",
                     [](std::vector<Dataset> datasets, const Dataset& choice, bool stop_on_empty) {
                       return CheckedDataset(Dataset::ChooseFromDatasets(
                           std::move(datasets), choice, {.stop_on_empty_dataset = stop_on_empty}));
                     });
  dataset.def_static("sample_from_datasets",
                     [](std::vector<Dataset> datasets, std::vector<double> weights,
                        std::optional<uint64_t> seed, bool stop_on_empty, bool rerandomize) {
                       return CheckedDataset(Dataset::SampleFromDatasets(
                           std::move(datasets), {.weights = std::move(weights),
                                                 .seed = seed,
                                                 .stop_on_empty_dataset = stop_on_empty,
                                                 .rerandomize_each_iteration = rerandomize}));
                     });
}

void BindRunning(py::class_<Dataset>& dataset) {
  dataset.def("prefetch", [](const Dataset& self, int64_t buffer_size) {
    return CheckedDataset(self.Prefetch(buffer_size));
  });
  dataset.def("cache", [](const Dataset& self, const std::string& path) {
    return CheckedDataset(path.empty() ? self.Cache() : self.Cache(path));
  });
  dataset.def("with_options", [](const Dataset& self, std::optional<bool> deterministic,
                                 std::optional<int64_t> threads) {
    return CheckedDataset(self.WithOptions({.deterministic = deterministic, .threads = threads}));
  });
  dataset.def("distribute", [](const Dataset& self, const py::dict& options) {
    return CheckedDataset(self.Distribute(DistributeOptionsFrom(options)));
  });
  dataset.def("make_iterator", &MakeIterator, arg("seed") = py::none(), arg("epoch") = py::none(),
              arg("gpu") = py::none());
  dataset.def("reduce", [](const Dataset& self, const Expr& initial, py::function function) {
    const StateFunction traced = TracedState(function);
    // Traced here, with the GIL, and read without it.
    absl::StatusOr<Element> last;
    {
      StateFunction with_gil = [&traced](const Expr& state, const Expr& element) {
        py::gil_scoped_acquire gil;
        return traced(state, element);
      };
      WithoutGil without_gil;
      last = self.Reduce(initial, with_gil);
    }
    Element element = ValueOrRaise(std::move(last));
    const bool writable = !element.IsShared();
    return LeavesOf(std::move(element), writable);
  });
}

void BindWindows(py::module_& module) {
  py::class_<WindowedDataset>(module, "WindowedDataset")
      .def("batch", [](const WindowedDataset& self) { return CheckedDataset(self.Batch()); })
      .def("ragged_batch",
           [](const WindowedDataset& self) { return CheckedDataset(self.RaggedBatch()); })
      .def("padded_batch",
           [](const WindowedDataset& self, NamedShapes shapes, const NamedValues& values) {
             return CheckedDataset(self.PaddedBatch({.padded_shapes = std::move(shapes),
                                                     .padding_values = PaddingValuesFrom(values)}));
           })
      .def("flat_map", [](const WindowedDataset& self, py::function function) {
        return CheckedDataset(self.FlatMap(
            [function](const Dataset& window) { return function(window).cast<Dataset>(); }));
      });
}

}  // namespace

void BindDatasets(py::module_& module) {
  py::class_<Dataset> dataset(module, "Dataset");
  BindSources(dataset);
  BindElementwise(dataset);
  BindBatching(dataset);
  BindOrder(dataset);
  BindRunning(dataset);
  BindWindows(module);
  dataset.def_property_readonly("spec", [](const Dataset& self) { return self.element_spec(); });
  dataset.def_property_readonly("leaf_names", [](const Dataset& self) {
    std::vector<std::string> names;
    const Spec& spec = self.element_spec();
    for (size_t i = 0; i < spec.leaves().size(); ++i) names.push_back(spec.LeafName(i));
    return names;
  });
  dataset.def_property_readonly("cardinality", &Dataset::cardinality);
  dataset.def_property_readonly("fingerprint", &Dataset::fingerprint);
  dataset.def("explain", [](const Dataset& self) { return self.Explain(); });
}

}  // namespace penstock::python
