// SPDX-License-Identifier: Apache-2.0
// dataset → worker: the cost of a node for each element, in one thread.
#include <benchmark/benchmark.h>

#include <optional>

#include "penstock/dataset.h"

namespace penstock {
namespace {

void Read(benchmark::State& state, const Dataset& dataset) {
  Iterator it = *dataset.MakeIterator();
  for (auto _ : state) {
    const absl::StatusOr<std::optional<Element>> element = it.Next();
    if (!element.ok() || !element->has_value()) return state.SkipWithError("no element");
    benchmark::DoNotOptimize((*element)->tensor(0).data<int64_t>().data());
  }
  state.SetItemsProcessed(state.iterations());
}

Dataset Numbers() {
  return Dataset::Range(int64_t{1} << 50);
}

void RangeAlone(benchmark::State& state) {
  Read(state, Numbers());
}
BENCHMARK(RangeAlone);

void MapOfAnExpression(benchmark::State& state) {
  Read(state, Numbers().Map([](auto x) { return x * int64_t{3} + int64_t{1}; },
                            {.num_parallel_calls = 1}));
}
BENCHMARK(MapOfAnExpression);

void FilterOfHalf(benchmark::State& state) {
  Read(state, Numbers().Filter([](auto x) { return x % int64_t{2} == int64_t{0}; }));
}
BENCHMARK(FilterOfHalf);

void BatchOf(benchmark::State& state) {
  Read(state, Numbers().Batch(state.range(0)));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BatchOf)->Arg(32)->Arg(1024);

// A Map and the batch of its results. With one call at a time the function runs on many rows at
// once; with two calls it runs row by row. Compare the CPU times of the process.
void MapAndBatch(benchmark::State& state, const MapFunction& fn, int64_t calls) {
  Read(state, Numbers().Map(fn, {.num_parallel_calls = calls}).Batch(state.range(0)));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

Expr Remainder(const Expr& x) {
  return (x * int64_t{3} + int64_t{1}) % int64_t{1000};
}
// A dozen operations on vectors of 16.
Expr Features(const Expr& x) {
  const Expr v = Cast(OneHot(x % int64_t{16}, 16, kInt64), kFloat32);
  const Expr y = Maximum((v - 0.06f) / 0.24f, -1);
  return Tuple({x, Cast(y * y + y, kFloat16), Where(y > 0.5f, y, -y)});
}

void RemaindersOverRows(benchmark::State& state) {
  MapAndBatch(state, Remainder, 1);
}
BENCHMARK(RemaindersOverRows)->Arg(32)->Arg(1024)->MeasureProcessCPUTime();

void RemaindersRowByRow(benchmark::State& state) {
  MapAndBatch(state, Remainder, 2);
}
BENCHMARK(RemaindersRowByRow)->Arg(32)->Arg(1024)->MeasureProcessCPUTime();

void FeaturesOverRows(benchmark::State& state) {
  MapAndBatch(state, Features, 1);
}
BENCHMARK(FeaturesOverRows)->Arg(32)->Arg(1024)->MeasureProcessCPUTime();

void FeaturesRowByRow(benchmark::State& state) {
  MapAndBatch(state, Features, 2);
}
BENCHMARK(FeaturesRowByRow)->Arg(32)->Arg(1024)->MeasureProcessCPUTime();

void ShuffleOf(benchmark::State& state) {
  Read(state, Numbers().Shuffle(state.range(0), {.seed = 1}));
}
BENCHMARK(ShuffleOf)->Arg(4096);

}  // namespace
}  // namespace penstock

BENCHMARK_MAIN();
