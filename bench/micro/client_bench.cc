// SPDX-License-Identifier: Apache-2.0
// slot → client: received elements are put in order, and credits are granted for taken elements.
#include <benchmark/benchmark.h>

#include "dataplane/client/delivery/merge.h"
#include "dataplane/client/session_state/credit_manager.h"

namespace penstock::client {
namespace {

// Merges elements of state.range(0) workers.
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

// A steady state: each received element is taken, and another is requested.
void GrantAndTake(benchmark::State& state) {
  CreditManager credits(/*max_elements=*/1024, /*max_bytes=*/1 << 30);
  const int64_t workers = state.range(0);
  for (int64_t i = 1; i <= workers; ++i) credits.AddLink(WorkerId(static_cast<uint64_t>(i)));
  int64_t elements = 0;
  for (auto _ : state) {
    for (const CreditManager::Grant& grant : credits.TakeGrants()) {
      for (int64_t i = 0; i < grant.count; ++i) {
        credits.OnReceived(grant.worker, 64);
        credits.OnReleased(grant.worker, 64);
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
