// SPDX-License-Identifier: Apache-2.0
// worker → slot: a slot lent and given back, an element laid out and written.
#include <benchmark/benchmark.h>

#include <vector>

#include "dataplane/element/block.h"
#include "dataplane/memory/pool.h"

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

// Where all elements have the same shapes: the layout is made once.
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

// As many tensors of 1 KiB.
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

}  // namespace
}  // namespace penstock

BENCHMARK_MAIN();
