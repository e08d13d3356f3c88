// SPDX-License-Identifier: Apache-2.0
// Replicas that read through the service: a shared job, a coordinated one, and processes with one
// replica each.
#include "tests/dataplane/replica/replicas.h"

#include <cstdlib>
#include <future>
#include <map>
#include <optional>
#include <sstream>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/cluster/cluster.h"
#include "tests/dataplane/transfer/child_process.h"

namespace penstock {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Steps = std::vector<std::vector<Rows>>;

Rows AllRows(const Steps& steps) {
  Rows all;
  for (const auto& step : steps)
    for (const Rows& rows : step) all.insert(all.end(), rows.begin(), rows.end());
  return Sorted(std::move(all));
}

// Row B9: both processes read one job; if it were sharded again, half of it would be lost.
TEST(SharedJobOfReplicas, IsNotShardedAgain) {
  Cluster cluster(1);
  const Dataset shared =
      Dataset::Range(240).Batch(6).Distribute(cluster.Options(ShardingPolicy::kDynamic, "shared"));
  InputOptions options;
  options.steps = 130;  // more than there is data for
  auto read = [&](int process) {
    return ReadSteps(DistributeDataset(Process(process, {2, 1}), shared, options));
  };
  auto other = std::async(std::launch::async, read, 1);
  const Steps mine = read(0);
  const Steps theirs = other.get();
  EXPECT_EQ(mine.size(), 130u);
  EXPECT_EQ(theirs.size(), 130u);
  Rows all = AllRows(mine);
  const Rows others = AllRows(theirs);
  all.insert(all.end(), others.begin(), others.end());
  EXPECT_EQ(Sorted(all), UpTo(240));
}

// Each replica has a pipeline of its own, and both share the next pass too.
TEST(SharedJobOfReplicas, IsSharedByReplicasOfOneProcess) {
  Cluster cluster(1);
  InputOptions options;
  options.replication_mode = ReplicationMode::kPerReplica;
  const absl::StatusOr<DistributedDataset> dataset = DistributeDataset(
      Process(0, {2}),
      Dataset::Range(240).Batch(6).Distribute(cluster.Options(ShardingPolicy::kDynamic, "both")),
      options);
  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(AllRows(ReadSteps(dataset)), UpTo(240));
}

// This process's step is half a batch of the job; the other half is read ahead.
TEST(SharedJobOfReplicas, GivesStatesWhereABatchOfTheJobEnds) {
  Cluster cluster(1);
  DistributeOptions job = cluster.Options(ShardingPolicy::kDynamic, "saved");
  job.ack_mode = AckMode::kOnCommit;
  InputOptions options;
  options.steps = 20;
  absl::StatusOr<DistributedDataset> dataset =
      DistributeDataset(Process(0, {1, 1}), Dataset::Range(40).Batch(4).Distribute(job), options);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  Rows rows;
  std::optional<State> state;
  {
    absl::StatusOr<DistributedIterator> it = dataset->MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    for (int step = 1; step <= 6; ++step) {
      for (int64_t row : AllRows(ReadSteps(*it, 1))) rows.push_back(row);
      absl::StatusOr<State> saved = it->Save();
      if (step % 2 == 1) {
        EXPECT_EQ(saved.status().code(), absl::StatusCode::kFailedPrecondition);
        EXPECT_THAT(saved.status().ToString(), HasSubstr("ends a batch of the job"));
        continue;
      }
      ASSERT_TRUE(saved.ok()) << saved.status();
      ASSERT_TRUE(it->Commit(*saved).ok());
      state = *std::move(saved);
    }
  }
  absl::StatusOr<DistributedIterator> it = dataset->MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  const absl::Status restored = it->Restore(*state);
  ASSERT_TRUE(restored.ok()) << restored;
  const Rows rest = AllRows(ReadSteps(*it));
  rows.insert(rows.end(), rest.begin(), rest.end());
  EXPECT_EQ(Sorted(rows), UpTo(40));
}

TEST(SharedJobOfReplicas, IsDealtToAllReplicasOfOneProcess) {
  Cluster cluster(2);
  const Dataset shared =
      Dataset::Range(40).Batch(4).Distribute(cluster.Options(ShardingPolicy::kDynamic, "dealt"));
  EXPECT_EQ(AllRows(ReadSteps(DistributeDataset(Mirrored(3), shared))), UpTo(40));
}

TEST(SharedJobOfReplicas, FiniteOnesNeedStepsAndAnonymousOnesAName) {
  const DistributeOptions named{.processing_mode = ShardingPolicy::kDynamic,
                                .service = "grpc://localhost:1",
                                .job_name = "job"};
  const Dataset batches = Dataset::Range(40).Batch(4);
  const absl::Status finite =
      DistributeDataset(Process(0, {1, 1}), batches.Distribute(named)).status();
  EXPECT_EQ(finite.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(DistributeDataset(Process(0, {1, 1}), batches.Repeat().Distribute(named)).ok());
  DistributeOptions anonymous = named;
  anonymous.job_name = "";
  const absl::Status no_name =
      DistributeDataset(Process(0, {1, 1}), batches.Repeat().Distribute(anonymous)).status();
  EXPECT_EQ(no_name.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(no_name.message()), HasSubstr("job_name"));
  InputOptions options;
  options.partial_batches = PartialBatches::kRepeat;
  EXPECT_EQ(DistributeDataset(Mirrored(2), batches.Distribute(named), options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

Dataset Coordinated(const std::string& service, const std::string& job, int64_t rows,
                    int64_t consumers, AckMode ack_mode = AckMode::kOnDelivery) {
  return Dataset::Range(rows).Batch(2).Distribute(
      {.processing_mode = ShardingPolicy::kDynamic,
       .service = service,
       .job_name = job,
       .ack_mode = ack_mode,
       .delivery = CoordinatedRounds{.num_consumers = consumers},
       .timeout = absl::Seconds(60)});
}

InputOptions Policy(PartialBatches policy) {
  InputOptions options;
  options.partial_batches = policy;
  return options;
}

TEST(CoordinatedReplicas, AreTheConsumersInOneProcess) {
  Cluster cluster(2);
  absl::StatusOr<DistributedDataset> dataset =
      DistributeDataset(Mirrored(3), Coordinated(cluster.service(), "three", 60, 3));
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  absl::StatusOr<DistributedIterator> it = dataset->MakeIterator();
  Rows all;
  int64_t round = 0;
  while (true) {
    absl::StatusOr<std::optional<DistributedValues>> values = it->Next();
    ASSERT_TRUE(values.ok()) << values.status();
    if (!values->has_value()) break;
    for (size_t i = 0; i < 3; ++i) {
      const Element& element = (**values)[i];
      const Rows rows = RowsOf(element);
      if (!rows.empty()) {
        EXPECT_EQ(StepTokenOf(element).round, round);
        EXPECT_EQ(StepTokenOf(element).consumer, static_cast<int64_t>(i));
      }
      all.insert(all.end(), rows.begin(), rows.end());
    }
    ++round;
  }
  EXPECT_GE(round, 10);
  EXPECT_EQ(Sorted(all), UpTo(60));
}

TEST(CoordinatedReplicas, TheLastRoundIsFilledByThePolicy) {
  Cluster cluster(1);
  const auto read = [&](const std::string& job, PartialBatches policy) {
    return ReadSteps(
        DistributeDataset(Mirrored(2), Coordinated(cluster.service(), job, 6, 2), Policy(policy)));
  };
  EXPECT_EQ(AllRows(read("empty", PartialBatches::kEmpty)), UpTo(6));
  EXPECT_EQ(AllRows(read("drop", PartialBatches::kDrop)).size(), 4u);
  EXPECT_EQ(AllRows(read("repeat", PartialBatches::kRepeat)).size(), 8u);
  absl::StatusOr<DistributedDataset> padded = DistributeDataset(
      Mirrored(2), Coordinated(cluster.service(), "pad", 6, 2), Policy(PartialBatches::kPad));
  absl::StatusOr<DistributedIterator> it = padded->MakeIterator();
  float counted = 0;
  int64_t rows = 0;
  for (int step = 0; step < 2; ++step) {
    absl::StatusOr<DistributedValues> values = it->GetNext();
    ASSERT_TRUE(values.ok()) << values.status();
    for (size_t i = 0; i < 2; ++i) {
      const int64_t here = (*values)[i].tensor(0).dim(0);
      rows += here;
      for (int64_t row = 0; row < here; ++row)
        counted += values->weights(i).empty() ? 1 : values->weights(i)[row];
    }
  }
  EXPECT_EQ(rows, 8);
  EXPECT_EQ(counted, 6);
  EXPECT_FALSE(it->Next()->has_value());
}

// One state of all consumers of this process, restored by the next iterator.
TEST(CoordinatedReplicas, GoOnFromOneState) {
  Cluster cluster(1);
  absl::StatusOr<DistributedDataset> dataset = DistributeDataset(
      Mirrored(2), Coordinated(cluster.service(), "restored", 40, 2, AckMode::kOnCommit));
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  Rows rows;
  State state;
  {
    absl::StatusOr<DistributedIterator> it = dataset->MakeIterator();
    rows = AllRows(ReadSteps(*it, 4));
    absl::StatusOr<State> saved = it->Save();
    ASSERT_TRUE(saved.ok()) << saved.status();
    ASSERT_TRUE(it->Commit(*saved).ok());
    state = *std::move(saved);
  }
  absl::StatusOr<DistributedIterator> it = dataset->MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  const absl::Status restored = it->Restore(state);
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_EQ(it->CheckStep(0).code(), absl::StatusCode::kOutOfRange);  // step 4 is next
  const Rows rest = AllRows(ReadSteps(*it));
  rows.insert(rows.end(), rest.begin(), rest.end());
  EXPECT_EQ(Sorted(rows), UpTo(40));
}

TEST(CoordinatedReplicas, MustBeAsManyAsConsumers) {
  const absl::Status status =
      DistributeDataset(Mirrored(2), Coordinated("grpc://localhost:1", "job", 6, 3)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("num_consumers = 3"));
}

// --- One process per replica -----------------------------------------------------------

// Returns "STEPS ROWS WEIGHT": steps made, rows seen, and the sum of their weights.
std::string ReadAsTold(const ReplicaGroup& group, const std::string& source, int policy,
                       const std::string& service, const std::string& job) {
  InputOptions options = Policy(static_cast<PartialBatches>(policy));
  Dataset dataset = Dataset::Range(0);
  if (source == "off") {  // of known length: rotated parts of 61 rows
    options.auto_shard = AutoShardPolicy::kOff;
    dataset = Dataset::Range(61).Batch(7);
  } else if (source == "data") {  // of unknown length
    dataset = Dataset::Range(200)
                  .Filter([](auto x) { return x % 3 == 0; })
                  .Shuffle(16)
                  .Batch(10, {.drop_remainder = false});
  } else if (source == "steps") {  // each process has its own, uneven data
    options.auto_shard = AutoShardPolicy::kOff;
    options.steps = 4;
    dataset = Dataset::Range(20 + 4 * group.process()).Batch(10);
  } else {
    dataset = Coordinated(service, job, 46, group.num_replicas_in_sync());
  }
  absl::StatusOr<DistributedDataset> distributed = DistributeDataset(group, dataset, options);
  if (!distributed.ok()) return std::string(distributed.status().ToString());
  int64_t steps = 0;
  int64_t rows = 0;
  double weight = 0;
  for (absl::StatusOr<DistributedValues>& values : distributed->Elements()) {
    if (!values.ok()) return absl::StrCat(steps, " steps, then ", values.status().ToString());
    ++steps;
    const int64_t here = (*values)[0].tensor(0).dim(0);
    rows += here;
    for (int64_t row = 0; row < here; ++row)
      weight += values->weights(0).empty() ? 1 : values->weights(0)[row];
  }
  return absl::StrCat(steps, " ", rows, " ", weight);
}

TEST(ReplicaChild, ObeysTheParent) {
  const char* role = std::getenv(transfer::kChildVariable);
  if (role == nullptr) GTEST_SKIP() << "for the children of the tests below";
  const std::vector<std::string> place = absl::StrSplit(role, ' ');
  setenv("RANK", place[0].c_str(), 1);
  setenv("WORLD_SIZE", place[1].c_str(), 1);
  absl::StatusOr<ReplicaGroup> group = ReplicaGroup::FromEnvironment();
  ASSERT_TRUE(group.ok()) << group.status();
  while (true) {
    std::istringstream words(transfer::HearFromParent());
    std::string source, service, job;
    int policy = 0;
    words >> source >> policy >> service >> job;
    transfer::SayToParent(ReadAsTold(*group, source, policy, service, job));
  }
}

struct Answer {
  int64_t steps = -1;
  int64_t rows = 0;
  double weight = 0;
};

class Processes {
 public:
  explicit Processes(int count) {
    for (int i = 0; i < count; ++i)
      children_.push_back(std::make_unique<transfer::Child>(absl::StrCat(i, " ", count),
                                                            "ReplicaChild.ObeysTheParent"));
  }
  std::vector<Answer> Read(const std::string& source, PartialBatches policy,
                           const std::string& service = "-", const std::string& job = "-") {
    for (auto& child : children_) {
      child->Say(absl::StrCat(source, " ", static_cast<int>(policy), " ", service, " ", job));
    }
    std::vector<Answer> answers;
    for (auto& child : children_) {
      const std::string said = child->Hear();
      Answer& answer = answers.emplace_back();
      std::istringstream words(said);
      if (!(words >> answer.steps >> answer.rows >> answer.weight)) {
        ADD_FAILURE() << source << ": " << said;
        answer.steps = -1;
      }
    }
    return answers;
  }

 private:
  std::vector<std::unique_ptr<transfer::Child>> children_;
};

constexpr PartialBatches kPolicies[] = {PartialBatches::kEmpty, PartialBatches::kDrop,
                                        PartialBatches::kPad, PartialBatches::kRepeat};

TEST(ReplicaProcesses, UnevenLocalDataEndsAtOneStepByEachPolicy) {
  constexpr int kProcesses = 3;
  Processes processes(kProcesses);
  for (const char* source : {"off", "data", "steps"}) {
    for (const PartialBatches policy : kPolicies) {
      // Data that ends before the promised number of steps cannot be dropped.
      if (std::string(source) == "steps" && policy == PartialBatches::kDrop) continue;
      SCOPED_TRACE(absl::StrCat(source, ", policy ", static_cast<int>(policy)));
      const std::vector<Answer> answers = processes.Read(source, policy);
      int64_t rows = 0;
      double weight = 0;
      for (const Answer& answer : answers) {
        EXPECT_GT(answer.steps, 0);
        EXPECT_EQ(answer.steps, answers[0].steps);
        rows += answer.rows;
        weight += answer.weight;
      }
      if (std::string(source) != "data") continue;
      // Of 67 rows in batches of 10: all rows, whole batches, filled batches.
      const bool filled = policy == PartialBatches::kPad || policy == PartialBatches::kRepeat;
      EXPECT_EQ(rows, policy == PartialBatches::kDrop ? 60 : filled ? 70 : 67);
      EXPECT_EQ(weight, policy == PartialBatches::kPad ? 67 : rows);
    }
  }
}

TEST(ReplicaProcesses, CoordinatedReadsEndAtOneStepByEachPolicy) {
#ifndef PENSTOCK_COMMAND  // in builds without gRPC
  GTEST_SKIP() << "without gRPC a dispatcher is heard in its own process alone";
#endif
  constexpr int kProcesses = 4;
  Cluster cluster(1);
  Processes processes(kProcesses);
  for (const PartialBatches policy : kPolicies) {
    SCOPED_TRACE(absl::StrCat("policy ", static_cast<int>(policy)));
    const std::vector<Answer> answers = processes.Read(
        "coordinated", policy, cluster.service(), absl::StrCat("job-", static_cast<int>(policy)));
    int64_t rows = 0;
    double weight = 0;
    for (const Answer& answer : answers) {
      EXPECT_EQ(answer.steps, answers[0].steps);
      rows += answer.rows;
      weight += answer.weight;
    }
    // There are 23 batches of 2 for 4 consumers: five whole rounds, and three batches over.
    EXPECT_EQ(answers[0].steps, policy == PartialBatches::kDrop ? 5 : 6);
    const bool filled = policy == PartialBatches::kPad || policy == PartialBatches::kRepeat;
    EXPECT_EQ(rows, policy == PartialBatches::kDrop ? 40 : filled ? 48 : 46);
    EXPECT_EQ(weight, policy == PartialBatches::kPad ? 46 : rows);
  }
}

}  // namespace
}  // namespace penstock
