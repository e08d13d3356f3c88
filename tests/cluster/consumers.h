// SPDX-License-Identifier: Apache-2.0
// Consumers of a coordinated read, each on a thread of its own, and the rounds they saw.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "penstock/step_token.h"
#include "tests/cluster/cluster.h"

namespace penstock {

// One consumer's view of a round.
struct Seen {
  StepToken token;
  int64_t value = 0;
};

struct Read {
  std::vector<Seen> rounds;
  absl::Status error;  // that ended its reading
};

inline DistributeOptions Consumer(const Cluster& cluster, int64_t index, int64_t consumers,
                                  ShardingPolicy mode, const std::string& job = "rounds") {
  DistributeOptions options = cluster.Options(mode, job);
  options.delivery = CoordinatedRounds{.consumer_index = index, .num_consumers = consumers};
  options.timeout = absl::Seconds(20);
  return options;
}

inline Dataset Numbers(int64_t count) {
  return Dataset::Range(count).Map([](auto x) { return x + 0; });
}

// Reads to the end, an error, or `most` rounds. Calls `at` before each step.
inline Read ReadRounds(Iterator& it, int64_t most = INT64_MAX,
                       const std::function<void(int64_t)>& at = nullptr) {
  Read read;
  for (int64_t step = 0; step < most; ++step) {
    if (at) at(step);
    absl::StatusOr<std::optional<Element>> element = it.Next();
    if (!element.ok()) {
      read.error = element.status();
      break;
    }
    if (!element->has_value()) break;
    read.rounds.push_back({StepTokenOf(**element), (*element)->tensor(0).scalar<int64_t>()});
  }
  return read;
}

// Reads with each consumer on a thread of its own.
inline std::vector<Read> ReadTogether(std::vector<Iterator>& consumers, int64_t most = INT64_MAX,
                                      const std::function<void(int64_t)>& at_of_first = nullptr) {
  std::vector<std::future<Read>> reading;
  for (size_t i = 0; i < consumers.size(); ++i) {
    reading.push_back(std::async(std::launch::async, [&, i] {
      return ReadRounds(consumers[i], most, i == 0 ? at_of_first : nullptr);
    }));
  }
  std::vector<Read> reads;
  for (auto& read : reading) reads.push_back(read.get());
  return reads;
}

inline std::vector<Iterator> Consumers(
    const Cluster& cluster, int64_t count, const Dataset& dataset, ShardingPolicy mode,
    const std::function<void(DistributeOptions&)>& set = nullptr) {
  std::vector<Iterator> consumers;
  for (int64_t i = 0; i < count; ++i) {
    DistributeOptions options = Consumer(cluster, i, count, mode);
    if (set) set(options);
    absl::StatusOr<Iterator> it = dataset.Distribute(options).MakeIterator();
    EXPECT_TRUE(it.ok()) << it.status();
    consumers.push_back(*std::move(it));
  }
  return consumers;
}

// Expects rounds in order without gaps, one partition and row in each round, and the same number of
// rounds for all.
inline void ExpectAligned(const std::vector<Read>& reads, int64_t first = 0,
                          int64_t remainder_rounds = 0) {
  for (size_t i = 0; i < reads.size(); ++i) {
    EXPECT_EQ(reads[i].rounds.size(), reads[0].rounds.size()) << "consumer " << i;
    const size_t rounds = std::min(reads[i].rounds.size(), reads[0].rounds.size());
    for (size_t r = 0; r < rounds; ++r) {
      const StepToken& token = reads[i].rounds[r].token;
      ASSERT_EQ(token.round, first + static_cast<int64_t>(r)) << "consumer " << i;
      ASSERT_EQ(token.consumer, static_cast<int64_t>(i));
      ASSERT_EQ(token.hash, reads[0].rounds[r].token.hash) << "round " << r;
      if (r > 0) {
        ASSERT_NE(token.hash, reads[i].rounds[r - 1].token.hash);
      }
      if (r + static_cast<size_t>(remainder_rounds) >= rounds) continue;
      ASSERT_EQ(token.partition, reads[0].rounds[r].token.partition) << "round " << r;
      ASSERT_EQ(token.index, reads[0].rounds[r].token.index + static_cast<int64_t>(i));
    }
  }
}

inline std::vector<int64_t> Values(const std::vector<Read>& reads, bool pads = false) {
  std::vector<int64_t> values;
  for (const Read& read : reads)
    for (const Seen& seen : read.rounds)
      if (pads || !seen.token.pad) values.push_back(seen.value);
  return Sorted(std::move(values));
}

}  // namespace penstock
