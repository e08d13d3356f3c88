// SPDX-License-Identifier: Apache-2.0
// R1: batches of 8,192 samples of a recommender, MLPerf's DLRM: 13 float32 and the label, and 214
// int32 in 26 features, with the model's number of look-ups in each. Samples are rows of two .npy
// files. A batch has one tensor for each feature, gathered from the rows. The limit is hand-written
// code that gathers them on one core.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/limits/limits.h"
#include "bench/limits/slot_limit.h"
#include "bench/workload.h"
#include "bench/workloads/files.h"
#include "include/status_macros.h"
#include "penstock/sources.h"

namespace penstock::bench {
namespace {

constexpr int64_t kSampleBatch = 8192;  // samples
constexpr int64_t kDense = 13;
constexpr int64_t kFloats = kDense + 1;  // and the label
constexpr std::array<int64_t, 26> kLookups = {3, 2, 1, 2, 6, 1, 1,  1,   1,  7,  3, 8, 1,
                                              6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1};
constexpr int64_t kInts = std::accumulate(kLookups.begin(), kLookups.end(), int64_t{0});
constexpr int64_t kSampleBytes = (kFloats + kInts) * 4;
constexpr int64_t kSampleBatchBytes = kSampleBatch * kSampleBytes;
static_assert(kSampleBytes == 912);

// Returns the number of batches that together are as large as a cold source.
int64_t SampleBatchCount(const Setup& setup) {
  return std::max<int64_t>(2, setup.source_bytes / kSampleBatchBytes);
}

std::string FloatsFile(const std::string& folder) {
  return folder + "/floats.npy";
}
std::string IntsFile(const std::string& folder) {
  return folder + "/ints.npy";
}

float FloatOf(int64_t sample, int64_t column) {
  return static_cast<float>((sample * kFloats + column) & 0xffff);
}
int32_t IntOf(int64_t sample, int64_t column) {
  return static_cast<int32_t>(static_cast<uint32_t>(sample * kInts + column));
}

// The tensors of a batch, at any addresses.
struct Columns {
  const float* dense;
  const float* label;
  std::array<const int32_t*, kLookups.size()> features;
};

// Checks that these are the samples of batch `number`. Reads every value.
absl::Status CheckColumns(const Columns& columns, int64_t number) {
  const int64_t first = number * kSampleBatch;
  int32_t wrong = 0;
  int64_t column = 0;
  for (size_t feature = 0; feature < kLookups.size(); ++feature) {
    const int64_t lookups = kLookups[feature];
    for (int64_t row = 0; row < kSampleBatch; ++row) {
      const int32_t* values = columns.features[feature] + row * lookups;
      const int32_t due = IntOf(first + row, column);
      for (int32_t i = 0; i < lookups; ++i) wrong |= values[i] ^ (due + i);
    }
    column += lookups;
  }
  for (int64_t row = 0; row < kSampleBatch; ++row) {
    const float* values = columns.dense + row * kDense;
    for (int64_t i = 0; i < kDense; ++i) wrong |= values[i] != FloatOf(first + row, i) ? 1 : 0;
    wrong |= columns.label[row] != FloatOf(first + row, kDense) ? 1 : 0;
  }
  if (wrong == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("expected the samples of batch ", number));
}

class RecommenderReader final : public Reader {
 public:
  explicit RecommenderReader(int64_t count) : count_(count) {}

  absl::StatusOr<int64_t> Take(const Element& element) override {
    Columns columns{.dense = element.tensor(0).data<float>().data(),
                    .label = element.tensor(1).data<float>().data(),
                    .features = {}};
    for (size_t i = 0; i < kLookups.size(); ++i) {
      columns.features[i] = element.tensor(i + 2).data<int32_t>().data();
    }
    int64_t& due = due_[element.identity().partition];
    RETURN_IF_ERROR(CheckColumns(columns, due));
    due = (due + 1) % count_;
    return kSampleBatchBytes;
  }

 private:
  const int64_t count_;
  std::map<PartitionId, int64_t> due_;
};

class GatherWork {
 public:
  GatherWork(MappedFile floats, MappedFile ints, int64_t count)
      : floats_(std::move(floats)), ints_(std::move(ints)), count_(count) {}

  absl::Status Fill(std::span<std::byte> slot, uint64_t number) {
    const int64_t first = static_cast<int64_t>(number) % count_ * kSampleBatch;
    const float* floats = floats_.as<float>() + kNpyHeaderBytes / 4 + first * kFloats;
    const int32_t* ints = ints_.as<int32_t>() + kNpyHeaderBytes / 4 + first * kInts;
    auto* dense = reinterpret_cast<float*>(slot.data());
    float* label = dense + kSampleBatch * kDense;
    std::array<int32_t*, kLookups.size()> features;
    auto* at = reinterpret_cast<int32_t*>(label + kSampleBatch);
    for (size_t i = 0; i < kLookups.size(); ++i) {
      features[i] = at;
      at += kSampleBatch * kLookups[i];
    }
    for (int64_t row = 0; row < kSampleBatch; ++row, floats += kFloats, ints += kInts) {
      std::memcpy(dense + row * kDense, floats, kDense * 4);
      label[row] = floats[kDense];
      const int32_t* values = ints;
      for (size_t i = 0; i < kLookups.size(); ++i) {
        for (int64_t j = 0; j < kLookups[i]; ++j) *features[i]++ = *values++;
      }
    }
    return absl::OkStatus();
  }
  absl::Status Take(std::span<const std::byte> slot, uint64_t number) {
    Columns columns{
        .dense = reinterpret_cast<const float*>(slot.data()), .label = nullptr, .features = {}};
    columns.label = columns.dense + kSampleBatch * kDense;
    auto* at = reinterpret_cast<const int32_t*>(columns.label + kSampleBatch);
    for (size_t i = 0; i < kLookups.size(); ++i) {
      columns.features[i] = at;
      at += kSampleBatch * kLookups[i];
    }
    return CheckColumns(columns, static_cast<int64_t>(number) % count_);
  }

 private:
  MappedFile floats_, ints_;
  int64_t count_;
};

class RecommenderSamples final : public Workload {
 public:
  std::string_view name() const override { return "R1"; }
  std::string_view question() const override {
    return "8,192 samples of a recommender, from rows to a tensor for each of 28 features";
  }
  std::vector<int64_t> sizes() const override { return {kSampleBatchBytes}; }
  bool sized() const override { return false; }

  bool has_files() const override { return true; }
  absl::Status Prepare(const Setup& setup) const override {
    const int64_t batches = SampleBatchCount(setup);
    std::vector<float> floats;
    std::vector<int32_t> ints;
    for (int64_t sample = 0; sample < batches * kSampleBatch; ++sample) {
      for (int64_t i = 0; i < kFloats; ++i) floats.push_back(FloatOf(sample, i));
      for (int64_t i = 0; i < kInts; ++i) ints.push_back(IntOf(sample, i));
    }
    RETURN_IF_ERROR(
        WriteFile(FloatsFile(setup.scratch), {NpyHeader("<f4", {batches, kSampleBatch, kFloats}),
                                              BytesOf(std::span<const float>(floats))}));
    return WriteFile(IntsFile(setup.scratch), {NpyHeader("<i4", {batches, kSampleBatch, kInts}),
                                               BytesOf(std::span<const int32_t>(ints))});
  }
  Dataset MakeDataset(const Setup& setup) const override {
    const Dataset floats =
        Dataset::Npy(FloatsFile(setup.scratch), Dense(kFloat32, {kSampleBatch, kFloats}));
    const Dataset ints =
        Dataset::Npy(IntsFile(setup.scratch), Dense(kInt32, {kSampleBatch, kInts}));
    return Dataset::Zip({floats, ints}).Repeat().Map([](const Expr& rows) {
      std::vector<Expr> tensors = {
          Slice(rows[0], {0, 0}, {kSampleBatch, kDense}),
          Reshape(Slice(rows[0], {0, kDense}, {kSampleBatch, 1}), {kSampleBatch}),
      };
      int64_t column = 0;
      for (int64_t lookups : kLookups) {
        tensors.push_back(Slice(rows[1], {0, column}, {kSampleBatch, lookups}));
        column += lookups;
      }
      return Tuple(std::move(tensors));
    });
  }
  std::unique_ptr<Reader> MakeReader(const Setup& setup) const override {
    return std::make_unique<RecommenderReader>(SampleBatchCount(setup));
  }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    ASSIGN_OR_RETURN(MappedFile floats, MappedFile::Open(FloatsFile(setup.scratch)));
    ASSIGN_OR_RETURN(MappedFile ints, MappedFile::Open(IntsFile(setup.scratch)));
    return std::make_unique<SlotLimit<GatherWork>>(
        "gather loop", kSampleBatchBytes,
        GatherWork(std::move(floats), std::move(ints), SampleBatchCount(setup)));
  }
};

}  // namespace

const Workload& R1() {
  static const RecommenderSamples& r1 = *new RecommenderSamples;
  return r1;
}

}  // namespace penstock::bench
