// SPDX-License-Identifier: Apache-2.0
// T1: opaque buffers, copied from a cold source into their slots at the worker,
// every byte summed at the reader. T1-0: the buffer is made once and the reader
// touches each page, so that what is left is latency and our own CPU.
#include <map>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "bench/limits.h"
#include "bench/workload.h"
#include "penstock/register.h"
#include "penstock/status.h"

namespace penstock::bench {
namespace {

// The source of a worker, by size; made at its first element.
Source& SourceOf(int64_t bytes) {
  static std::mutex& mu = *new std::mutex;
  static auto& sources = *new std::map<int64_t, std::unique_ptr<Source>>;
  std::lock_guard lock(mu);
  std::unique_ptr<Source>& source = sources[bytes];
  if (source == nullptr) source = std::make_unique<Source>(bytes);
  return *source;
}

// (bytes, source_bytes, number) → that many bytes, stamped with the number.
absl::Status CopyFromSource(CallContext& call) {
  const int64_t bytes = call.inputs()[0].scalar<int64_t>();
  const int64_t number = call.inputs()[2].scalar<int64_t>();
  PENSTOCK_ASSIGN_OR_RETURN(absl::Span<std::byte> slot, call.Output(0, {bytes}));
  SourceOf(call.inputs()[1].scalar<int64_t>())
      .Fill({slot.data(), slot.size()}, static_cast<uint64_t>(number));
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("bench.copy_from_source", 1, Dense(kUInt8, {kUnknownDim}), CopyFromSource);

class StampReader final : public Reader {
 public:
  StampReader(Touch touch, bool alone) : touch_(touch), alone_(alone) {}

  absl::StatusOr<int64_t> Take(const Element& element) override {
    const absl::Span<const uint8_t> values = element.tensor(0).data<uint8_t>();
    const std::span bytes{reinterpret_cast<const std::byte*>(values.data()), values.size()};
    sum_ += SumOf(bytes, touch_);
    const Identity identity = element.identity();
    const auto index = static_cast<uint64_t>(identity.index);
    // A reader of its own job gets each worker's elements in order, all of them.
    uint64_t& due = due_[identity.partition];
    if (!IsStamped(bytes, index) || (alone_ && index != due)) {
      return absl::DataLossError(
          absl::StrCat("element ", index, " has other contents or is not the one due, ", due));
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

class Buffers final : public Workload {
 public:
  Buffers(std::string_view name, std::string_view question, Touch touch, bool cold)
      : name_(name), question_(question), touch_(touch), cold_(cold) {}

  std::string_view name() const override { return name_; }
  std::string_view question() const override { return question_; }
  std::vector<int64_t> sizes() const override {
    return {4096, 65'536, 262'176, 1 << 20, 9'633'792, 58'720'256};
  }

  Dataset MakeDataset(const Setup& setup) const override {
    const Load load = LoadOf(setup);
    return Dataset::Range(int64_t{1} << 40)
        .Map(
            [load](const Expr& number) {
              return Call("bench.copy_from_source",
                          Tuple({Expr(load.element_bytes), Expr(load.source_bytes), number}));
            },
            {.num_parallel_calls = 1});
  }
  std::unique_ptr<Reader> MakeReader(const Setup& setup) const override {
    return std::make_unique<StampReader>(touch_, setup.consumers == 1);
  }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    return MakeTransferLimit(LoadOf(setup), setup.protocol);
  }

 private:
  Load LoadOf(const Setup& setup) const {
    return {.element_bytes = setup.element_bytes,
            .source_bytes = cold_ ? setup.source_bytes : setup.element_bytes,
            .touch = touch_};
  }

  std::string_view name_, question_;
  Touch touch_;
  bool cold_;
};

}  // namespace

const Workload& T1() {
  static const Buffers& t1 = *new Buffers("T1", "buffers from a cold source, every byte read",
                                          Touch::kEveryByte, /*cold=*/true);
  return t1;
}

const Workload& T1Zero() {
  static const Buffers& t1_zero = *new Buffers(
      "T1-0", "buffers made once, a byte of each page read: latency and CPU", Touch::kEveryPage,
      /*cold=*/false);
  return t1_zero;
}

}  // namespace penstock::bench
