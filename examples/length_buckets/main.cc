// SPDX-License-Identifier: Apache-2.0
// Trainers that step together on sequences of very different lengths. In each round all of them get
// batches from the same bucket of lengths, so no trainer waits for another one's longer batch.
// Needs no other process: the dispatcher, the workers and the trainers' threads are in this one.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "penstock/penstock.h"

namespace ps = penstock;

namespace {

constexpr int64_t kTrainers = 2;
constexpr int64_t kBatch = 16;
constexpr int64_t kSteps = 200;

// "Sentences": a sentence of length n is the number n, n times.
ps::Dataset Sentences() {
  return ps::Dataset::Range(4096)
      .Map([](auto i) { return i * 7919 % 97 + 1; })
      // Batches of one bucket of lengths, kTrainers of them for each round.
      .GroupByWindow([](auto length) { return length / 16; }, kBatch)
      .Batch()
      .Repeat()
      .Rounds(kTrainers, {.bucket = [](auto lengths) { return lengths[0] / 16; }});
}

// Returns the longest sentence of each step's batch: the cost of the step for this trainer.
std::vector<int64_t> Train(const std::string& service, int64_t rank) {
  std::vector<int64_t> longest;
  absl::StatusOr<ps::Iterator> it =
      Sentences()
          .Distribute({.processing_mode = ps::ShardingPolicy::kOff,
                       .service = service,
                       .job_name = "length_buckets",
                       .delivery = ps::CoordinatedRounds{.consumer_index = rank,
                                                         .num_consumers = kTrainers}})
          .MakeIterator();
  for (int64_t step = 0; it.ok() && step < kSteps; ++step) {
    const absl::Status in_step = it->CheckStep(step);
    absl::StatusOr<std::optional<ps::Element>> batch = in_step.ok() ? it->Next() : in_step;
    if (!batch.ok() || !batch->has_value()) {
      std::fprintf(stderr, "length_buckets: trainer %d at step %d: %s\n", static_cast<int>(rank),
                   static_cast<int>(step), batch.status().ToString().c_str());
      break;
    }
    const auto lengths = (*batch)->tensor(0).data<int64_t>();
    longest.push_back(*std::max_element(lengths.begin(), lengths.end()));
  }
  return longest;
}

}  // namespace

int main() {
  auto dispatcher = ps::DispatchServer::Start({});
  if (!dispatcher.ok()) return 1;
  std::vector<std::unique_ptr<ps::WorkerServer>> workers;
  for (int i = 0; i < 2; ++i) {
    auto worker = ps::WorkerServer::Start({.dispatcher_address = (*dispatcher)->target()});
    if (!worker.ok()) return 1;
    workers.push_back(*std::move(worker));
  }
  std::vector<std::vector<int64_t>> longest(kTrainers);
  {
    std::vector<std::jthread> trainers;
    for (int64_t rank = 0; rank < kTrainers; ++rank) {
      trainers.emplace_back(
          [&, rank] { longest[static_cast<size_t>(rank)] = Train((*dispatcher)->target(), rank); });
    }
  }
  int64_t apart = 0;  // steps whose batches come from different buckets
  for (size_t step = 0; step < longest[0].size() && step < longest[1].size(); ++step) {
    if (longest[0][step] / 16 != longest[1][step] / 16) ++apart;
  }
  const bool ok = apart == 0 && longest[0].size() == kSteps && longest[1].size() == kSteps;
  std::printf("length_buckets: %s steps=%zu apart=%d\n", ok ? "ok" : "wrong", longest[0].size(),
              static_cast<int>(apart));
  return ok ? 0 : 1;
}
