// SPDX-License-Identifier: Apache-2.0
// T2: elements of 200 tensors of 1 to 64 KiB: the cost of a tensor apart from its bytes.
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "bench/limits/limits.h"
#include "bench/workload.h"
#include "include/status_macros.h"
#include "penstock/register.h"

namespace penstock::bench {
namespace {

constexpr int kTensors = 200;

// Returns every size from 1 to 64 KiB, in a scattered order.
constexpr int64_t BytesOf(int tensor) {
  return 1024 * (1 + tensor * 29 % 64);
}

constexpr int64_t AllBytes() {
  int64_t bytes = 0;
  for (int i = 0; i < kTensors; ++i) bytes += BytesOf(i);
  return bytes;
}

Spec TensorsSpec() {
  std::vector<Spec> tensors;
  for (int i = 0; i < kTensors; ++i) tensors.push_back(Dense(kUInt8, {BytesOf(i)}));
  return Spec::Tuple(std::move(tensors));
}

// Maps (source_bytes, number) to the tensors, each stamped with the number.
absl::Status FillTensors(CallContext& call) {
  static Source& source = *new Source(static_cast<size_t>(call.inputs()[0].scalar<int64_t>()));
  const auto number = static_cast<uint64_t>(call.inputs()[1].scalar<int64_t>());
  for (int i = 0; i < kTensors; ++i) {
    ASSIGN_OR_RETURN(absl::Span<std::byte> slot, call.Output(i, {BytesOf(i)}));
    source.Fill({slot.data(), slot.size()}, number);
  }
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("bench.fill_tensors", 1, TensorsSpec(), FillTensors);

class TensorsReader final : public Reader {
 public:
  absl::StatusOr<int64_t> Take(const Element& element) override {
    const Identity identity = element.identity();
    uint64_t& due = due_[identity.partition];
    int64_t total = 0;
    for (int i = 0; i < kTensors; ++i) {
      const absl::Span<const uint8_t> values = element.tensor(i).data<uint8_t>();
      const std::span bytes{reinterpret_cast<const std::byte*>(values.data()), values.size()};
      sum_ += SumOf(bytes, Touch::kEveryByte);
      if (!IsStamped(bytes, due)) {
        return absl::DataLossError(absl::StrCat("tensor ", i, " of element ", identity.index,
                                                " is not that of element ", due));
      }
      total += static_cast<int64_t>(bytes.size());
    }
    ++due;
    return total;
  }

 private:
  std::map<PartitionId, uint64_t> due_;
  uint64_t sum_ = 0;
};

class Tensors final : public Workload {
 public:
  std::string_view name() const override { return "T2"; }
  std::string_view question() const override { return "T1 in 200 tensors of 1 to 64 KiB"; }
  std::vector<int64_t> sizes() const override { return {AllBytes()}; }
  bool sized() const override { return false; }

  Dataset MakeDataset(const Setup& setup) const override {
    return Dataset::Range(int64_t{1} << 40)
        .Map(
            [source_bytes = setup.source_bytes](const Expr& number) {
              return Call("bench.fill_tensors", Tuple({Expr(source_bytes), number}));
            },
            {.num_parallel_calls = 1});
  }
  std::unique_ptr<Reader> MakeReader(const Setup& /*setup*/) const override {
    return std::make_unique<TensorsReader>();
  }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    return MakeTransferLimit({.element_bytes = setup.element_bytes,
                              .source_bytes = setup.source_bytes,
                              .hosts = setup.hosts,
                              .scratch = setup.scratch},
                             setup.protocol);
  }
};

}  // namespace

const Workload& T2() {
  static const Tensors& t2 = *new Tensors;
  return t2;
}

}  // namespace penstock::bench
