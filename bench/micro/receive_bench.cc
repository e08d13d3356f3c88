// SPDX-License-Identifier: Apache-2.0
// slot → transfer → slot: small elements are packed into a frame, and data received from a network
// is checked and passed on.
#include <benchmark/benchmark.h>

#include "dataplane/element/frame.h"
#include "dataplane/memory/pool.h"
#include "dataplane/transfer/element_receiver.h"

namespace penstock {
namespace {

constexpr size_t kFrameBytes = 64 << 10;

Element OfBytes(int64_t bytes) {
  const std::vector<uint8_t> values(bytes, 7);
  const int64_t dims[] = {bytes};
  const Tensor tensors[] = {Tensor(kUInt8, dims, values.data())};
  return *MakeElement(DefaultPool(), tensors, Dense(kUInt8, {kUnknownDim}));
}

// Packs as many copies of `element` as a frame takes.
size_t Fill(const Element& element, absl::Span<std::byte> memory, size_t& bytes) {
  FrameWriter writer(memory);
  while (writer.Append(element.block())) {
  }
  bytes = writer.Seal().size();
  return writer.count();
}

void PackFrame(benchmark::State& state) {
  const Element element = OfBytes(state.range(0));
  const Loan frame = *DefaultPool().Lend(kFrameBytes);
  size_t bytes = 0, count = 0;
  for (auto _ : state) count = Fill(element, frame.bytes(), bytes);
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * count));
}
BENCHMARK(PackFrame)->Arg(8)->Arg(1024)->Arg(16 << 10);

// Counts received elements and destroys them.
class Counter final : public transfer::ReceiveEvents {
 public:
  void OnElements(absl::Span<Element> elements) override {
    for (Element& element : elements) const Element taken = std::move(element);
    count += elements.size();
  }
  void OnError(const Identity&, const absl::Status&) override {}
  void OnRecalled(transfer::Credits) override {}
  void OnClosed(const absl::Status&) override {}
  size_t count = 0;
};

void ReceiveFrame(benchmark::State& state) {
  const Loan frame = *DefaultPool().Lend(kFrameBytes);
  size_t bytes = 0;
  Fill(OfBytes(state.range(0)), frame.bytes(), bytes);
  transfer::ElementReceiver receiver(Dense(kUInt8, {kUnknownDim}), 1 << 30);
  receiver.Grant(int64_t{1} << 62);
  Counter counter;
  int64_t received = 0;
  for (auto _ : state) {
    const absl::Status status = receiver.Frame(frame.Share(), bytes, counter, received);
    if (!status.ok()) return state.SkipWithError("the frame was refused");
  }
  state.SetItemsProcessed(static_cast<int64_t>(counter.count));
}
BENCHMARK(ReceiveFrame)->Arg(8)->Arg(1024)->Arg(16 << 10);

// Receives one element in its own slot, of which only the head is read.
void ReceiveElement(benchmark::State& state) {
  const Element element = OfBytes(state.range(0));
  transfer::ElementReceiver receiver(Dense(kUInt8, {kUnknownDim}), 1 << 30);
  Counter counter;
  int64_t received = 0;
  for (auto _ : state) {
    const absl::Status status =
        receiver.Element(element.loan().Share(), element.block().size(), counter, received);
    if (!status.ok()) return state.SkipWithError("the element was refused");
  }
  state.SetItemsProcessed(static_cast<int64_t>(counter.count));
}
BENCHMARK(ReceiveElement)->Arg(64 << 10)->Arg(16 << 20);

}  // namespace
}  // namespace penstock

BENCHMARK_MAIN();
