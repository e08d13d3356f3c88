// SPDX-License-Identifier: Apache-2.0
#include "bench/workloads/buffers.h"

#include <map>
#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"
#include "penstock/register.h"

namespace penstock::bench {
namespace {

// Returns a worker's source by size and words. It is made at its first element.
Source& SourceOf(int64_t bytes, Words words) {
  static std::mutex& mu = *new std::mutex;
  static auto& sources = *new std::map<std::pair<int64_t, Words>, std::unique_ptr<Source>>;
  std::lock_guard lock(mu);
  std::unique_ptr<Source>& source = sources[{bytes, words}];
  if (source == nullptr) source = std::make_unique<Source>(bytes, words);
  return *source;
}

// Maps (bytes, source_bytes, number, words) to that many bytes, stamped with the number.
absl::Status CopyFromSource(CallContext& call) {
  const int64_t bytes = call.inputs()[0].scalar<int64_t>();
  const int64_t number = call.inputs()[2].scalar<int64_t>();
  ASSIGN_OR_RETURN(absl::Span<std::byte> slot, call.Output(0, {bytes}));
  SourceOf(call.inputs()[1].scalar<int64_t>(),
           static_cast<Words>(call.inputs()[3].scalar<int64_t>()))
      .Fill({slot.data(), slot.size()}, static_cast<uint64_t>(number));
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("bench.copy_from_source", 2, Dense(kUInt8, {kUnknownDim}), CopyFromSource);

class StampReader final : public Reader {
 public:
  StampReader(Touch touch, bool alone) : touch_(touch), alone_(alone) {}

  absl::StatusOr<int64_t> Take(const Element& element) override {
    const absl::Span<const uint8_t> values = element.tensor(0).data<uint8_t>();
    const std::span bytes{reinterpret_cast<const std::byte*>(values.data()), values.size()};
    sum_ += SumOf(bytes, touch_);
    const Identity identity = element.identity();
    const auto index = static_cast<uint64_t>(identity.index);
    // If the reader has its own job, it gets all elements of each worker in order.
    uint64_t& due = due_[identity.partition];
    if (!IsStamped(bytes, index) || (alone_ && index != due)) {
      return absl::DataLossError(
          absl::StrCat("element ", index, " has wrong contents, or is not element ", due));
    }
    due = index + 1;
    return static_cast<int64_t>(bytes.size());
  }

 private:
  const Touch touch_;
  const bool alone_;
  std::map<PartitionId, uint64_t> due_;
  uint64_t sum_ = 0;
};

}  // namespace

Load Buffers::LoadOf(const Setup& setup) const {
  // All workers' sources together have the size of a single worker's.
  return {.element_bytes = setup.element_bytes,
          .source_bytes = cold_ ? setup.source_bytes / setup.workers : setup.element_bytes,
          .touch = touch_,
          .hosts = setup.hosts,
          .scratch = setup.scratch};
}

Dataset Buffers::MakeDataset(const Setup& setup) const {
  const Load load = LoadOf(setup);
  return Dataset::Range(int64_t{1} << 40)
      .Repeat()
      .Map(
          [load, words = static_cast<int64_t>(words_)](const Expr& number) {
            return Call(
                "bench.copy_from_source",
                Tuple({Expr(load.element_bytes), Expr(load.source_bytes), number, Expr(words)}));
          },
          {.num_parallel_calls = 1});
}

std::unique_ptr<Reader> Buffers::MakeReader(const Setup& setup) const {
  return std::make_unique<StampReader>(touch_, setup.consumers == 1);
}

absl::StatusOr<std::unique_ptr<Side>> Buffers::MakeLimit(const Setup& setup) const {
  return MakeTransferLimit(LoadOf(setup), setup.protocol);
}

}  // namespace penstock::bench
