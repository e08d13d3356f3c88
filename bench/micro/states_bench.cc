// SPDX-License-Identifier: Apache-2.0
// States of a trainer: their size, and how long Save() takes, including its call to the dispatcher.
#include <benchmark/benchmark.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/penstock.h"

namespace penstock {
namespace {

constexpr int kWorkers = 2;

struct Service {
  explicit Service(int64_t permits) {
    dispatcher = *DispatchServer::Start({});
    for (int i = 0; i < kWorkers; ++i) {
      WorkerConfig config;
      config.dispatcher_address = dispatcher->target();
      config.permits = static_cast<int>(permits) / kWorkers;
      workers.push_back(*WorkerServer::Start(config));
    }
  }
  ~Service() {
    for (auto& worker : workers) worker->Stop();
    dispatcher->Stop();
  }
  std::unique_ptr<DispatchServer> dispatcher;
  std::vector<std::unique_ptr<WorkerServer>> workers;
};

enum Kind : int64_t { kOne, kShared, kOrdered, kRounds };

Dataset Job(const Service& service, Kind kind, int64_t partitions) {
  DistributeOptions options{.processing_mode = ShardingPolicy::kDynamic,
                            .service = service.dispatcher->target(),
                            .job_name = "states"};
  options.ack_mode = AckMode::kOnCommit;
  if (kind == kOrdered) {
    options.delivery = DeterministicOrder{.partitions = partitions};
  }
  if (kind == kRounds) options.delivery = CoordinatedRounds();
  return Dataset::Range(100'000'000).Distribute(options);
}

// Arguments: kind; partitions; elements that each reader takes between two states.
void Saves(benchmark::State& state) {
  const auto kind = static_cast<Kind>(state.range(0));
  const int64_t partitions = state.range(1);
  Service service(partitions);
  std::vector<Iterator> readers;
  for (int i = 0; i < (kind == kShared ? 2 : 1); ++i) {
    readers.push_back(*Job(service, kind, partitions).MakeIterator());
  }
  State saved;
  for (auto _ : state) {
    state.PauseTiming();
    for (int64_t i = 0; i < state.range(2); ++i) {
      for (Iterator& reader : readers) benchmark::DoNotOptimize(reader.Next());
    }
    state.ResumeTiming();
    saved = *readers[0].Save();
    state.PauseTiming();
    if (!readers[0].Commit(saved).ok()) return state.SkipWithError("Commit");
    for (size_t i = 1; i < readers.size(); ++i) {
      if (!readers[i].Commit(*readers[i].Save()).ok()) return state.SkipWithError("Commit");
    }
    state.ResumeTiming();
  }
  state.counters["bytes"] = static_cast<double>(saved.bytes.size());
}

BENCHMARK(Saves)
    ->ArgNames({"kind", "partitions", "elements"})
    ->ArgsProduct({{kOne, kOrdered, kRounds}, {8, 64}, {1000}})
    ->ArgsProduct({{kShared}, {8}, {1000, 10'000}})
    ->Iterations(100)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace penstock

BENCHMARK_MAIN();
