// SPDX-License-Identifier: Apache-2.0
// worker → slot: a slot is lent and given back; an element is laid out and written; a shared
// segment is made and mapped by both sides, with and without pages of 2 MiB.
#include <benchmark/benchmark.h>
#include <sys/prctl.h>

#include <cstring>
#include <vector>

#include "dataplane/element/block.h"
#include "dataplane/memory/pool.h"
#include "dataplane/memory/shared_segment.h"
#include "dataplane/memory/slot_segment.h"

namespace penstock {
namespace {

void LendAndReturn(benchmark::State& state) {
  const std::shared_ptr<Pool> pool = Pool::Create();
  for (auto _ : state) {
    absl::StatusOr<Loan> loan = pool->Lend(state.range(0));
    benchmark::DoNotOptimize(loan->bytes().data());
  }
}
BENCHMARK(LendAndReturn)->Arg(64)->Arg(64 << 10)->Arg(16 << 20);

// All elements have the same shapes, so the layout is computed once.
void WriteStatic(benchmark::State& state) {
  const std::shared_ptr<Pool> pool = Pool::Create();
  const Spec spec = Dense(kUInt8, {state.range(0)});
  const BlockLayout layout = BlockLayout::OfStatic(spec);
  const std::vector<std::byte> values(state.range(0), std::byte{7});
  for (auto _ : state) {
    absl::StatusOr<OpenBlock> block = NewBlock(*pool, layout, spec);
    std::copy(values.begin(), values.end(), block->writer.data(0).begin());
    const Element element = std::move(*block).Seal(spec);
    benchmark::DoNotOptimize(element.block().data());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(WriteStatic)->Arg(64)->Arg(4 << 10)->Arg(64 << 10)->Arg(1 << 20);

// An element of state.range(0) tensors of 1 KiB.
void WriteTensors(benchmark::State& state) {
  const std::shared_ptr<Pool> pool = Pool::Create();
  const std::vector<uint8_t> values(1024, 7);
  const int64_t dims[] = {1024};
  const std::vector<Tensor> tensors(state.range(0), Tensor(kUInt8, dims, values.data()));
  const Spec spec =
      Spec::Tuple(std::vector<Spec>(state.range(0), Spec(Dense(kUInt8, {kUnknownDim}))));
  for (auto _ : state) {
    absl::StatusOr<Element> element = MakeElement(*pool, tensors, spec);
    benchmark::DoNotOptimize(element->block().data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(WriteTensors)->Arg(1)->Arg(20)->Arg(200);

// Turns huge pages on or off for this process.
void SetHugePages(bool on) {
  ::prctl(PR_SET_THP_DISABLE, on ? 0 : 1, 0, 0, 0);
}

// A segment as the two sides of a link make it: the client makes it and maps its view, the worker
// maps its own view, and each body is written and read once. Arguments: bytes of a body; huge
// pages.
void MakeSegment(benchmark::State& state) {
  SetHugePages(state.range(1) != 0);
  const SlotLayout layout = LayoutFor(state.range(0), kMaxSlots);
  std::vector<std::byte> read(layout.body_bytes);
  for (auto _ : state) {
    absl::StatusOr<SharedSegment> made = SharedSegment::Create(layout.bytes());
    absl::StatusOr<SlotView> client = SlotView::Map(made->fd(), layout);
    absl::StatusOr<SlotView> worker = SlotView::Map(made->fd(), layout);
    for (uint32_t slot = 0; slot < layout.slots; ++slot) {
      std::memset(worker->body(slot), 1, layout.body_bytes);
      std::memcpy(read.data(), client->body(slot), layout.body_bytes);
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(layout.bytes()));
  SetHugePages(true);
}
BENCHMARK(MakeSegment)->ArgsProduct({{256 << 10, 1 << 20, 9'600'000}, {0, 1}});

// A slot of a new pool, written once. Arguments as above.
void FirstTouch(benchmark::State& state) {
  SetHugePages(state.range(1) != 0);
  for (auto _ : state) {
    const std::shared_ptr<Pool> pool = Pool::Create();
    absl::StatusOr<Loan> loan = pool->Lend(state.range(0));
    std::memset(loan->bytes().data(), 1, state.range(0));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
  SetHugePages(true);
}
BENCHMARK(FirstTouch)->ArgsProduct({{9'600'000}, {0, 1}});

// A large slot written repeatedly, so that only page look-ups differ. Arguments as above.
void WriteAgain(benchmark::State& state) {
  SetHugePages(state.range(1) != 0);
  const SlotLayout layout = LayoutFor(state.range(0), kMaxSlots);
  absl::StatusOr<SharedSegment> made = SharedSegment::Create(layout.bytes());
  absl::StatusOr<SlotView> view = SlotView::Map(made->fd(), layout);
  const std::vector<std::byte> from(state.range(0), std::byte{7});
  uint32_t slot = 0;
  for (auto _ : state) {
    std::memcpy(view->body(slot), from.data(), from.size());
    slot = (slot + 1) % layout.slots;
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
  SetHugePages(true);
}
BENCHMARK(WriteAgain)->ArgsProduct({{256 << 10, 1 << 20, 9'600'000}, {0, 1}});

}  // namespace
}  // namespace penstock

BENCHMARK_MAIN();
