// SPDX-License-Identifier: Apache-2.0
// Eight trainers as processes that read rounds of one job. Under each policy they end at one step,
// and if one is killed, the others get its name.
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "control/observe/event_log.h"
#include "control/observe/metrics.h"
#include "tests/cluster/cluster.h"
#include "tests/dataplane/replica/replicas.h"
#include "tests/dataplane/transfer/child_process.h"
#include "tests/eventually.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kRanks = 8;
constexpr int64_t kUnevenRows = 214;  // rows that pass the filter of Uneven()

// --- In a child ----------------------------------------------------------------------

// Partitions of uneven lengths: the number of rows that pass the filter of a split is unknown.
Dataset Uneven(const std::string& service, const std::string& job) {
  return Dataset::Range(500)
      .Filter([](auto x) { return x % 7 < 1 + x / 100; })
      .Batch(2)
      .Distribute({.processing_mode = ShardingPolicy::kDynamic,
                   .service = service,
                   .job_name = job,
                   .delivery = CoordinatedRounds{.num_consumers = kRanks},
                   .timeout = absl::Minutes(5)});
}

// Reports "reads" after `steps`, then steps until an error and reports that.
void ReadUntilAnError(const ReplicaGroup& group, const Dataset& dataset, int64_t steps) {
  absl::StatusOr<DistributedDataset> distributed = DistributeDataset(group, dataset);
  absl::StatusOr<DistributedIterator> it =
      distributed.ok() ? distributed->MakeIterator() : distributed.status();
  if (!it.ok()) return transfer::SayToParent(std::string(it.status().ToString()));
  for (int64_t step = 0;; ++step) {
    absl::StatusOr<std::optional<DistributedValues>> values = it->Next();
    if (!values.ok()) return transfer::SayToParent(std::string(values.status().ToString()));
    if (!values->has_value()) return transfer::SayToParent("the end");
    if (step + 1 == steps) transfer::SayToParent("reads");
  }
}

TEST(TrainerChild, ObeysTheParent) {
  const char* role = std::getenv(transfer::kChildVariable);
  if (role == nullptr) GTEST_SKIP() << "for the children of the tests below";
  setenv("RANK", role, 1);
  setenv("WORLD_SIZE", std::to_string(kRanks).c_str(), 1);
  absl::StatusOr<ReplicaGroup> group = ReplicaGroup::FromEnvironment();
  ASSERT_TRUE(group.ok()) << group.status();
  while (true) {
    std::istringstream words(transfer::HearFromParent());
    std::string what, service, job;
    int64_t number = 0;
    words >> what >> service >> job >> number;
    if (what == "read") {
      transfer::SayToParent(CountsOfPass(*group, Uneven(service, job),
                                         {.partial_batches = static_cast<PartialBatches>(number)}));
    } else {
      const Dataset endless = Dataset::Range(1000).Repeat().Batch(2).Distribute(
          {.processing_mode = ShardingPolicy::kOff,
           .service = service,
           .job_name = job,
           .delivery = CoordinatedRounds{.num_consumers = kRanks},
           .timeout = absl::Minutes(5)});
      ReadUntilAnError(*group, endless, number);
    }
  }
}

// --- In the parent -------------------------------------------------------------------

class Trainers {
 public:
  Trainers() {
    for (int rank = 0; rank < kRanks; ++rank)
      children_.push_back(
          std::make_unique<transfer::Child>(std::to_string(rank), "TrainerChild.ObeysTheParent"));
  }
  transfer::Child& operator[](size_t rank) { return *children_[rank]; }
  void Say(const std::string& line) {
    for (auto& child : children_) child->Say(line);
  }
  std::vector<std::string> Hear(size_t but = kRanks) {
    std::vector<std::string> answers;
    for (size_t rank = 0; rank < kRanks; ++rank)
      if (rank != but) answers.push_back(children_[rank]->Hear());
    return answers;
  }

 private:
  std::vector<std::unique_ptr<transfer::Child>> children_;
};

int64_t Metric(const std::string& name) {
  for (absl::string_view line : absl::StrSplit(ProcessMetrics().Render(), '\n')) {
    int64_t value = 0;
    if (absl::StartsWith(line, name) && absl::SimpleAtoi(line.substr(line.rfind(' ') + 1), &value))
      return value;
  }
  return -1;
}

// The last batch of a partition may have one row. So there are 107 batches or a few more, and the
// last round is full only if their number is a multiple of 8.
TEST(RoundsOfProcesses, EndAtOneStepByEachPolicy) {
  Cluster cluster(2);
  Trainers trainers;
  for (const PartialBatches policy :
       {PartialBatches::kEmpty, PartialBatches::kDrop, PartialBatches::kPad,
        PartialBatches::kRepeat, PartialBatches::kError}) {
    SCOPED_TRACE(absl::StrCat("policy ", static_cast<int>(policy)));
    trainers.Say(absl::StrCat("read ", cluster.service(), " job-", static_cast<int>(policy), " ",
                              static_cast<int>(policy)));
    std::string first;
    double weight = 0;
    int64_t rows = 0;
    for (const std::string& answer : trainers.Hear()) {
      const std::vector<std::string> words = absl::StrSplit(answer, absl::MaxSplits(' ', 3));
      ASSERT_EQ(words.size(), 4u) << answer;
      if (first.empty()) first = words[0];
      EXPECT_EQ(words[0], first);
      rows += std::atoll(words[1].c_str());
      weight += std::atof(words[2].c_str());
      // With two partitions some round lacks elements.
      EXPECT_THAT(words[3], StartsWith(policy == PartialBatches::kError ? "OUT_OF_RANGE" : "OK"));
    }
    EXPECT_GE(std::atoll(first.c_str()), 13);
    const bool fills = policy == PartialBatches::kEmpty || policy == PartialBatches::kPad;
    EXPECT_TRUE(!fills || weight == kUnevenRows) << weight;
    EXPECT_TRUE(policy == PartialBatches::kRepeat ? rows >= kUnevenRows
                                                  : fills || rows <= kUnevenRows)
        << rows;
  }
}

// Its connection stays open but silent.
TEST(RoundsOfProcesses, AStoppedTrainerIsSuspectedUntilItGoesOn) {
  const auto suspected = [] {
    return Metric("penstock_dispatcher_lost_consumers{state=\"suspected\"}");
  };
  Cluster cluster(1);
  Trainers trainers;
  trainers.Say(absl::StrCat("hold ", cluster.service(), " endless 100"));
  EXPECT_THAT(trainers.Hear(), Each("reads"));
  trainers[5].Stop();
  ASSERT_TRUE(Eventually([&] { return suspected() >= 1; }));
  trainers[5].Continue();
  ASSERT_TRUE(Eventually([&] { return suspected() == 0; }));
  EXPECT_EQ(Metric("penstock_dispatcher_events_total{event=\"step_torn\"}"), -1);
}

TEST(RoundsOfProcesses, AKilledTrainerIsSuspectedAndThenDead) {
  DispatcherConfig config;
  config.client_timeout = absl::Seconds(6);
  Cluster cluster(2, config);
  Trainers trainers;
  trainers.Say(absl::StrCat("hold ", cluster.service(), " endless 100"));
  EXPECT_THAT(trainers.Hear(), Each("reads"));
  const int64_t suspected_before =
      Metric("penstock_dispatcher_events_total{event=\"consumer_suspected\"}");
  trainers[3].Kill();
  // The end of its connection reveals a killed trainer long before the 2 s after which a silent one
  // is suspected; and no trainer returns an error because it was suspected.
  for (const std::string& answer : trainers.Hear(/*but=*/3)) {
    // Others may be late at that moment, and so may the trainer before it was killed.
    EXPECT_THAT(answer, AllOf(HasSubstr("UNAVAILABLE: "), HasSubstr(" cannot be given out: "),
                              HasSubstr("consumer 3 is dead: not heard from since ")));
  }
  EXPECT_GT(Metric("penstock_dispatcher_events_total{event=\"consumer_suspected\"}"),
            suspected_before);
  EXPECT_EQ(Metric("penstock_dispatcher_lost_consumers{state=\"dead\"}"), 1);
  EXPECT_GT(Metric("penstock_dispatcher_steps_compared_total"), 0);
  EXPECT_EQ(Metric("penstock_dispatcher_events_total{event=\"step_torn\"}"), -1);
}

}  // namespace
}  // namespace penstock
