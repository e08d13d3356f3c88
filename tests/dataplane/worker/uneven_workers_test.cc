// SPDX-License-Identifier: Apache-2.0
// Splits among workers of different speeds: the dispatcher's policy and the workers' feeds, in
// simulated time.
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "control/policy/splits.h"
#include "dataplane/worker/split_feed.h"
#include "gtest/gtest.h"

namespace penstock::worker {
namespace {

namespace c = ::penstock::control;
namespace p = ::penstock::protocol;

// An iteration in mode DYNAMIC, with a partition on each worker.
class Job {
 public:
  // `costs`: the milliseconds that each worker needs for a split.
  Job(int64_t splits, std::vector<int64_t> costs) : costs_(std::move(costs)) {
    auto dataset = std::make_shared<const c::DatasetRecord>(
        c::DatasetRecord{"1000", "", {.plan = {{.count = splits, .shuffled = true}}}});
    state_.Apply(c::DatasetRegistered{dataset});
    state_.Apply(c::JobCreated{{.id = JobId(1),
                                .name = "job",
                                .dataset = dataset,
                                .terms = {.mode = ShardingPolicy::kDynamic}}});
    state_.Apply(c::IterationCreated{kIteration, JobId(1), 0});
    for (size_t w = 0; w < costs_.size(); ++w) {
      const PartitionId id(w + 1);
      state_.Apply(c::IterationAltered{kIteration, p::PartitionOpened{id}});
      feeds_.push_back(std::make_unique<PartitionSplits>(
          std::vector<c::SplitRun>(),
          [this, id](int provider, int64_t repetition, int64_t first, int32_t wanted) {
            Answer({{kIteration, id, Placement(1)}, provider, repetition, first, wanted});
          },
          [](bool) {}, [this] { return now_; }));
    }
  }

  // Returns the time when the last split is done. The worker that is free first takes the next
  // split.
  int64_t Time() {
    std::vector<int64_t> free_at(costs_.size(), 0), ordinals(costs_.size(), 0);
    std::vector<bool> over(costs_.size(), false);
    int64_t end = 0;
    while (true) {
      std::optional<size_t> next;
      for (size_t w = 0; w < costs_.size(); ++w) {
        if (!over[w] && (!next || free_at[w] < free_at[*next])) next = w;
      }
      if (!next) return end;
      now_ = absl::UnixEpoch() + absl::Milliseconds(free_at[*next]);
      auto split = feeds_[*next]->Get(0, 0, ordinals[*next]++);
      EXPECT_TRUE(split.ok()) << split.status();
      over[*next] = !split.ok() || !split->has_value();
      if (over[*next]) continue;
      ++done_;
      free_at[*next] += costs_[*next];
      end = std::max(end, free_at[*next]);
    }
  }
  int64_t done() const { return done_; }

 private:
  static constexpr IterationId kIteration{1};

  void Answer(const c::SplitRequest& request) {
    absl::StatusOr<c::SplitDecision> decision =
        c::DecideSplits(state_.jobs.at(JobId(1)), state_.iterations.at(kIteration), request);
    ASSERT_TRUE(decision.ok()) << decision.status();
    if (decision->given) state_.Apply(*decision->given);
    feeds_[request.of.partition.value() - 1]->Append(decision->answer);
  }

  const std::vector<int64_t> costs_;
  absl::Time now_ = absl::UnixEpoch();
  c::State state_;
  std::vector<std::unique_ptr<PartitionSplits>> feeds_;
  int64_t done_ = 0;
};

// Expects that together they take as long as their speeds require, plus one split of the slowest.
void ExpectItsShareAlone(const std::vector<int64_t>& costs) {
  double speed = 0;
  for (int64_t cost : costs) speed += 1 / static_cast<double>(cost);
  const auto slowest = static_cast<double>(*std::max_element(costs.begin(), costs.end()));
  for (int64_t splits = 0; splits <= 2000; splits += splits < 100 ? 1 : 100) {
    Job job(splits, costs);
    EXPECT_LE(static_cast<double>(job.Time()), static_cast<double>(splits) / speed + slowest + 1e-6)
        << splits << " splits";
    EXPECT_EQ(job.done(), splits);
  }
}

TEST(UnevenWorkers, AHalfSpeedWorkerCostsItsShare) {
  ExpectItsShareAlone({10, 20});
  ExpectItsShareAlone({20, 10});
  ExpectItsShareAlone({10, 10, 10, 20});
}

TEST(UnevenWorkers, AWorkerThatCrawlsHoldsNoMoreThanOneSplitAtTheEnd) {
  ExpectItsShareAlone({10, 1000});
  ExpectItsShareAlone({1000, 10, 10});
}

}  // namespace
}  // namespace penstock::worker
