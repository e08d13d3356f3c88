// SPDX-License-Identifier: Apache-2.0
// C1: CosmoFlow of MLPerf Storage. Reads a record of 128³ × 4 uint8 from its own TFRecord file,
// checks its checksum and widens it to int16, for a trainer that computes 3.5 ms on each, like an
// H100. MLPerf's records are gzipped to 2,828,486 bytes. These are not, because inflating would
// take nearly all of the time. The limit is hand-written code that does the same on one core, at
// most as fast as such a trainer.
#include <algorithm>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/limits/limits.h"
#include "bench/limits/slot_limit.h"
#include "bench/workload.h"
#include "bench/workloads/files.h"
#include "dataplane/dataset/sources/formats/tfrecord_writer.h"
#include "dataplane/element/crc32c.h"
#include "include/status_macros.h"
#include "penstock/sources.h"

namespace penstock::bench {
namespace {

constexpr int64_t kEdge = 128;
constexpr int64_t kRedshifts = 4;
constexpr int64_t kValues = kEdge * kEdge * kEdge * kRedshifts;
constexpr double kVolumeStep = 0.0035;  // seconds
// Precede a TFRecord's data: its length and the length's checksum.
constexpr int64_t kRecordHeadBytes = 12;

// Returns the number of records that together are as large as a cold source.
int64_t VolumeCount(const Setup& setup) {
  return std::max<int64_t>(2, setup.source_bytes / kValues);
}

std::string VolumeFile(const std::string& folder, int64_t number) {
  return absl::StrFormat("%s/%05d.tfrecord", folder, number);
}

// Returns whether eight widened bytes are `number`.
bool IsWidened(const int16_t* values, uint64_t number) {
  for (int i = 0; i < 8; ++i) {
    if (values[i] != static_cast<int16_t>(number >> (8 * i) & 0xff)) return false;
  }
  return true;
}

// Checks that these are the values of record `number`. Reads a byte of each page.
absl::Status CheckVolume(std::span<const int16_t> values, uint64_t number, uint64_t& sum) {
  sum += SumOf(std::as_bytes(values), Touch::kEveryPage);
  if (static_cast<int64_t>(values.size()) == kValues && IsWidened(values.data(), number) &&
      IsWidened(values.data() + kValues - 8, number)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("expected the values of record ", number));
}

class VolumeReader final : public Reader {
 public:
  explicit VolumeReader(int64_t count) : count_(count) {}

  absl::StatusOr<int64_t> Take(const Element& element) override {
    const absl::Span<const int16_t> values = element.tensor(0).data<int16_t>();
    int64_t& due = due_[element.identity().partition];
    RETURN_IF_ERROR(CheckVolume({values.data(), values.size()}, static_cast<uint64_t>(due), sum_));
    due = (due + 1) % count_;
    return static_cast<int64_t>(values.size() * sizeof(int16_t));
  }

 private:
  const int64_t count_;
  std::map<PartitionId, int64_t> due_;
  uint64_t sum_ = 0;
};

class WideningWork {
 public:
  WideningWork(std::string folder, int64_t count) : folder_(std::move(folder)), count_(count) {}

  absl::Status Fill(std::span<std::byte> slot, uint64_t number) {
    const std::string name = VolumeFile(folder_, static_cast<int64_t>(number) % count_);
    RETURN_IF_ERROR(ReadWhole(name, record_));
    const std::string_view data = std::string_view(record_).substr(kRecordHeadBytes, kValues);
    uint32_t checksum = 0;
    std::memcpy(&checksum, record_.data() + kRecordHeadBytes + kValues, sizeof checksum);
    if (MaskedCrc32c(data) != checksum)
      return absl::DataLossError(absl::StrCat(name, " is damaged"));
    auto* out = reinterpret_cast<int16_t*>(slot.data());
    for (int64_t i = 0; i < kValues; ++i) out[i] = static_cast<uint8_t>(data[i]);
    return absl::OkStatus();
  }
  absl::Status Take(std::span<const std::byte> slot, uint64_t number) {
    return CheckVolume(
        {reinterpret_cast<const int16_t*>(slot.data()), slot.size() / sizeof(int16_t)},
        number % count_, sum_);
  }

 private:
  std::string folder_;
  int64_t count_;
  std::string record_;
  uint64_t sum_ = 0;
};

class Volumes final : public Workload {
 public:
  std::string_view name() const override { return "C1"; }
  std::string_view question() const override {
    return "records of 8.4 MB, checked and widened to int16, for a trainer that computes 3.5 ms on "
           "each";
  }
  std::vector<int64_t> sizes() const override { return {kValues * 2}; }
  bool sized() const override { return false; }
  double step_s() const override { return kVolumeStep; }

  bool has_files() const override { return true; }
  absl::Status Prepare(const Setup& setup) const override {
    Source source(kColdBytes / 8);
    std::string record(kValues, '\0');
    for (int64_t number = 0; number < VolumeCount(setup); ++number) {
      source.Fill(std::as_writable_bytes(std::span(record)), static_cast<uint64_t>(number));
      RETURN_IF_ERROR(WriteFile(VolumeFile(setup.scratch, number), {TFRecordBytes(record)}));
    }
    return absl::OkStatus();
  }
  Dataset MakeDataset(const Setup& setup) const override {
    return Dataset::ListFiles(setup.scratch + "/*.tfrecord")
        .Repeat()
        .Interleave(Dataset::TFRecord)
        .Map([](const Expr& record) {
          return Cast(DecodeRaw(record, kUInt8, {kEdge, kEdge, kEdge, kRedshifts}), kInt16);
        });
  }
  std::unique_ptr<Reader> MakeReader(const Setup& setup) const override {
    return std::make_unique<VolumeReader>(VolumeCount(setup));
  }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    return MakePacedLimit(
        std::make_unique<SlotLimit<WideningWork>>("widening loop", setup.element_bytes,
                                                  WideningWork(setup.scratch, VolumeCount(setup))),
        1 / kVolumeStep);
  }
};

}  // namespace

const Workload& C1() {
  static const Volumes& c1 = *new Volumes;
  return c1;
}

}  // namespace penstock::bench
