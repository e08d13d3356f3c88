// SPDX-License-Identifier: Apache-2.0
// S1-inplace: batches of rows for trainers that compute on each, so that all windows are full.
// Measures the share of the batches that the worker has to copy into shared memory, by the number
// of trainers and the last node before Distribute. Also compares the CPU time of a batch, over all
// processes, with that of one trainer without such a node.
#include "absl/strings/str_cat.h"
#include "bench/service.h"
#include "bench/source.h"
#include "bench/workload.h"
#include "penstock/expr.h"

namespace penstock::bench {
namespace {

constexpr int64_t kPictureBytes = 37'632;  // of 112 x 112: one row
// A trainer's computing rate: 4 ms for a batch of 30 rows, 34 ms for one of 256.
constexpr double kRowsPerSecond = 7500;

int64_t RowsOf(const Setup& setup) {
  return setup.element_bytes / kPictureBytes;
}

Dataset Batches(const Setup& setup) {
  return Dataset::Range(int64_t{1} << 40)
      .Map(
          [source_bytes = setup.source_bytes](const Expr& row) {
            return Call("bench.copy_from_source",
                        Tuple({Expr(kPictureBytes), Expr(source_bytes), row,
                               Expr(static_cast<int64_t>(Words::kRandom))}));
          },
          {.num_parallel_calls = 1})
      .Batch(RowsOf(setup));
}

Expr IsAny(const Expr& batch) {
  return Cast(batch[0][0], kInt64) >= 0;
}

class PictureReader final : public Reader {
 public:
  // For a dataset that takes batches from `inputs` equal datasets in turn.
  PictureReader(int64_t rows, int64_t inputs) : rows_(rows), inputs_(inputs) {}

  absl::StatusOr<int64_t> Take(const Element& element) override {
    const absl::Span<const uint8_t> values = element.tensor(0).data<uint8_t>();
    const std::span bytes{reinterpret_cast<const std::byte*>(values.data()), values.size()};
    sum_ += SumOf(bytes, Touch::kEveryByte);
    const int64_t first = element.identity().index / inputs_ * rows_;
    for (int64_t row = 0; row < rows_; ++row) {
      const auto number = static_cast<uint64_t>(first + row);
      if (!IsStamped(bytes.subspan(static_cast<size_t>(row * kPictureBytes), kPictureBytes),
                     number))
        return absl::DataLossError(absl::StrCat("row ", number, " has wrong contents"));
    }
    return static_cast<int64_t>(bytes.size());
  }

 private:
  const int64_t rows_, inputs_;
  uint64_t sum_ = 0;
};

class InPlace final : public Workload {
 public:
  std::string_view name() const override { return "S1-inplace"; }
  std::string_view question() const override {
    return "batches for 1, 2 and 4 trainers, by the last node before Distribute: the share that is "
           "copied";
  }
  std::vector<int64_t> sizes() const override { return {30 * kPictureBytes, 256 * kPictureBytes}; }
  bool sized() const override { return false; }
  std::vector<Shape> shapes() const override {
    std::vector<Shape> shapes;
    for (const char* last : {"", "Prefetch", "Filter", "Interleave"}) {
      for (const int trainers : {1, 2, 4}) shapes.push_back({.consumers = trainers, .last = last});
      for (const int trainers : {2, 4})
        shapes.push_back({.consumers = trainers, .coordinated = true, .last = last});
    }
    return shapes;
  }
  Basis basis() const override { return Basis::kElementsPerCpuSecond; }
  double StepOf(const Element& batch) const override {
    return static_cast<double>(batch.tensor(0).dim(0)) / kRowsPerSecond;
  }

  Dataset MakeDataset(const Setup& setup) const override {
    if (setup.last == "Interleave") {
      return Dataset::Range(2).Interleave([setup](const Expr&) { return Batches(setup); },
                                          {.cycle_length = 2, .block_length = 1});
    }
    const Dataset batches = Batches(setup);
    if (setup.last == "Prefetch") return batches.Prefetch(2);
    if (setup.last == "Filter") return batches.Filter(IsAny);
    return batches;
  }
  std::unique_ptr<Reader> MakeReader(const Setup& setup) const override {
    return std::make_unique<PictureReader>(RowsOf(setup), setup.last == "Interleave" ? 2 : 1);
  }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    Setup one = setup;
    one.consumers = 1;
    one.coordinated = false;
    one.last = "";
    return StartService(one, "one trainer");
  }
};

}  // namespace

const Workload& S1InPlace() {
  static const InPlace& in_place = *new InPlace;
  return in_place;
}

}  // namespace penstock::bench
