// SPDX-License-Identifier: Apache-2.0
// slot → client: what landed is put in order, and credits follow what is taken.
#include <benchmark/benchmark.h>

#include "dataplane/client/merge.h"
#include "dataplane/client/window.h"

namespace penstock::client {
namespace {

// From as many workers.
void MergeInTurn(benchmark::State& state) {
  Merge merge(MergeOrder::kFair);
  const int64_t workers = state.range(0);
  for (auto _ : state) {
    for (int64_t i = 1; i <= workers; ++i) {
      merge.Push({.from = WorkerId(static_cast<uint64_t>(i)), .bytes = 64});
    }
    while (!merge.empty()) benchmark::DoNotOptimize(merge.Pop().bytes);
  }
  state.SetItemsProcessed(state.iterations() * workers);
}
BENCHMARK(MergeInTurn)->Arg(1)->Arg(8)->Arg(64);

// A steady state: each element that lands is taken, and asked for again.
void GrantAndTake(benchmark::State& state) {
  Window window(/*max_elements=*/1024, /*max_bytes=*/1 << 30);
  const int64_t workers = state.range(0);
  for (int64_t i = 1; i <= workers; ++i) window.AddLink(WorkerId(static_cast<uint64_t>(i)));
  int64_t elements = 0;
  for (auto _ : state) {
    for (const Window::Grant& grant : window.TakeGrants()) {
      for (int64_t i = 0; i < grant.count; ++i) {
        window.OnLanded(grant.worker, 64);
        window.OnTaken(grant.worker, 64);
      }
      elements += grant.count;
    }
  }
  state.SetItemsProcessed(elements);
}
BENCHMARK(GrantAndTake)->Arg(1)->Arg(8)->Arg(64);

}  // namespace
}  // namespace penstock::client

BENCHMARK_MAIN();
