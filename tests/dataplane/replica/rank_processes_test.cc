// SPDX-License-Identifier: Apache-2.0
// Eight processes with one replica each, in step over a host communicator.
#include <cstdlib>
#include <sstream>

#include "absl/strings/str_split.h"
#include "tests/dataplane/replica/collectives.h"
#include "tests/dataplane/replica/replicas.h"
#include "tests/dataplane/transfer/child_process.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kRanks = 8;

// --- In a child ----------------------------------------------------------------------

// Returns "STEPS STATUS" of a loop that has data for 5 + 3 × rank steps.
std::string AlignSteps(const ReplicaGroup& group, PartialBatches policy) {
  absl::StatusOr<StepAligner> aligner = StepAligner::Make(group, {.partial_batches = policy});
  if (!aligner.ok()) return absl::StrCat("- ", aligner.status().ToString());
  int64_t left = 5 + 3 * group.process();
  int64_t steps = 0;
  absl::Status status = aligner->Start(left > 0);
  while (status.ok()) {
    const absl::StatusOr<bool> goes_on = aligner->Finish();
    status = goes_on.status();
    if (!status.ok() || !*goes_on) break;
    ++steps;
    status = aligner->Start(--left > 0);  // one step ahead
  }
  return absl::StrCat(steps, " ", status.ToString());
}

// Reads rows 0 … 159, of which rank r has those that are r modulo 8 and below 20 (r + 1). Returns
// "STEPS ROWS WEIGHT STATUS".
std::string ReadUneven(const ReplicaGroup& group, PartialBatches policy, int64_t batch) {
  InputOptions options;
  options.partial_batches = policy;
  options.auto_shard = AutoShardPolicy::kHint;
  const Dataset dataset = Dataset::Range(160)
                              .Shard(kShardHint, kShardHint)
                              .Filter([](auto x) { return x < 20 * (x % 8 + 1); })
                              .Batch(batch);
  return CountsOfPass(group, dataset, options);
}

// Returns the results of Reduce() and Gather() on values that depend on the rank.
std::string ReduceAndGather(const ReplicaGroup& group) {
  const int rank = group.process();
  absl::StatusOr<int> sum = group.Reduce(ReduceOp::kSum, PerReplica<int>({rank}));
  absl::StatusOr<double> mean = group.Reduce(ReduceOp::kMean, PerReplica<double>({rank * 0.5}));
  absl::StatusOr<std::vector<float>> vector = group.Reduce(
      ReduceOp::kSum, PerReplica<std::vector<float>>({{1.0f, static_cast<float>(rank)}}));
  std::vector<Element> own;
  Iterator it = *Dataset::Range(rank, 2 * rank + 1).Batch(16).MakeIterator();
  own.push_back(**std::move(it.Next()));
  const DistributedValues values(std::move(own));
  absl::StatusOr<Element> gathered = group.Gather(values);
  absl::StatusOr<Element> reduced = group.Reduce(ReduceOp::kSum, values, /*axis=*/0);
  for (const absl::Status& status :
       {sum.status(), mean.status(), vector.status(), gathered.status(), reduced.status()})
    if (!status.ok()) return std::string(status.ToString());
  return absl::StrCat(*sum, " ", *mean, " ", (*vector)[0], " ", (*vector)[1], " ",
                      gathered->tensor(0).dim(0), " ", reduced->tensor(0).data<int64_t>()[0]);
}

// Waits for the others in a step that one of them never makes.
std::string WaitForOthers(const ReplicaGroup& group, bool makes_it) {
  absl::StatusOr<StepAligner> aligner = StepAligner::Make(group, {});
  if (!aligner.ok()) return std::string(aligner.status().ToString());
  transfer::SayToParent("is there");
  if (!makes_it) return transfer::HearFromParent();
  const absl::Status status = aligner->Align(true).status();
  EXPECT_EQ(aligner->AsyncError().code(), status.code());
  return std::string(status.ToString());
}

TEST(ChildProcess, ObeysTheParent) {
  const char* role = std::getenv(transfer::kChildVariable);
  if (role == nullptr) GTEST_SKIP() << "for the children of the tests below";
  const std::vector<std::string> place = absl::StrSplit(role, ' ');
  setenv("RANK", place[0].c_str(), 1);
  setenv("WORLD_SIZE", place[1].c_str(), 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", place[2].c_str(), 1);
  absl::StatusOr<ReplicaGroup> group = ReplicaGroup::FromEnvironment();
  ASSERT_TRUE(group.ok()) << group.status();
  group = group->Connect({.silence = absl::Milliseconds(std::atoll(place[3].c_str()))});
  ASSERT_TRUE(group.ok()) << group.status();
  transfer::SayToParent("connected");
  while (true) {
    std::istringstream words(transfer::HearFromParent());
    std::string what;
    int policy = 0;
    int64_t batch = 0;
    words >> what >> policy >> batch;
    std::string answer;
    if (what == "align") answer = AlignSteps(*group, static_cast<PartialBatches>(policy));
    if (what == "read") answer = ReadUneven(*group, static_cast<PartialBatches>(policy), batch);
    if (what == "reduce") answer = ReduceAndGather(*group);
    if (what == "wait") answer = WaitForOthers(*group, /*makes_it=*/true);
    if (what == "hold") answer = WaitForOthers(*group, /*makes_it=*/false);
    transfer::SayToParent(answer);
  }
}

// --- In the parent -------------------------------------------------------------------

class Launch {
 public:
  explicit Launch(int64_t silence_ms = 3600 * 1000) {
    const std::string address = replica::FreeAddress();
    const std::string port = address.substr(address.rfind(':') + 1);
    for (int rank = 0; rank < kRanks; ++rank) {
      children_.push_back(std::make_unique<transfer::Child>(
          absl::StrCat(rank, " ", kRanks, " ", port, " ", silence_ms)));
    }
    for (auto& child : children_) EXPECT_EQ(child->Hear(), "connected");
  }
  transfer::Child& operator[](size_t rank) { return *children_[rank]; }
  void Say(const std::string& line) {
    for (auto& child : children_) child->Say(line);
  }
  std::vector<std::string> Hear() {
    std::vector<std::string> answers;
    for (auto& child : children_) answers.push_back(child->Hear());
    return answers;
  }

 private:
  std::vector<std::unique_ptr<transfer::Child>> children_;
};

std::string Ask(const std::string& what, PartialBatches policy, int64_t batch = 0) {
  return absl::StrCat(what, " ", static_cast<int>(policy), " ", batch);
}

constexpr PartialBatches kFilling[] = {PartialBatches::kEmpty, PartialBatches::kPad,
                                       PartialBatches::kRepeat};

TEST(AlignedProcesses, StopAtOneStepByEachPolicy) {
  Launch launch;
  for (const PartialBatches policy : kFilling) {
    launch.Say(Ask("align", policy));
    EXPECT_THAT(launch.Hear(), ::testing::Each("26 OK"));
  }
  launch.Say(Ask("align", PartialBatches::kDrop));
  EXPECT_THAT(launch.Hear(), ::testing::Each("5 OK"));
  launch.Say(Ask("align", PartialBatches::kError));
  EXPECT_THAT(launch.Hear(),
              ::testing::Each(StartsWith("5 OUT_OF_RANGE: process 0 has no data for step 5")));
}

// Shards have 3, 5, 8, 10, 12, 15, 17 and 20 rows, in batches of 2 each.
TEST(AlignedProcesses, ReadUnevenShardsToOneStepByEachPolicy) {
  Launch launch;
  constexpr int64_t kBatch = 2 * kRanks;
  constexpr int64_t kRows[kRanks] = {3, 5, 8, 10, 12, 15, 17, 20};
  const auto read = [&](PartialBatches policy) {
    launch.Say(Ask("read", policy, kBatch));
    return launch.Hear();
  };
  const std::vector<std::string> empty = read(PartialBatches::kEmpty);
  const std::vector<std::string> padded = read(PartialBatches::kPad);
  const std::vector<std::string> repeated = read(PartialBatches::kRepeat);
  const std::vector<std::string> dropped = read(PartialBatches::kDrop);
  const std::vector<std::string> errors = read(PartialBatches::kError);
  for (size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(empty[rank], absl::StrCat("10 ", kRows[rank], " ", kRows[rank], " OK"));
    EXPECT_EQ(padded[rank], absl::StrCat("10 20 ", kRows[rank], " OK"));
    EXPECT_EQ(repeated[rank], "10 20 20 OK");
    EXPECT_EQ(dropped[rank], "1 2 2 OK");  // rank 0's second batch has one row
    EXPECT_THAT(errors[rank], StartsWith("1 2 2 OUT_OF_RANGE: process 0 has no data for step 1"));
  }
}

TEST(AlignedProcesses, NameProcessesThatReadOtherData) {
  Launch launch;
  for (size_t rank = 0; rank < kRanks; ++rank)
    launch[rank].Say(Ask("read", PartialBatches::kEmpty, rank == 5 ? 24 : 16));
  for (const std::string& answer : launch.Hear()) {
    EXPECT_THAT(
        answer,
        HasSubstr("FAILED_PRECONDITION: the processes of the group differ in what they read: "
                  "the dataset's fingerprint is "));
    EXPECT_THAT(answer, HasSubstr(" in process(es) 5"));
    EXPECT_THAT(answer, HasSubstr(" in process(es) 0, 1, 2, 3, 4, 6, 7"));
  }
  // The processes may go on with another policy.
  for (size_t rank = 0; rank < kRanks; ++rank)
    launch[rank].Say(Ask("align", rank == 2 ? PartialBatches::kDrop : PartialBatches::kPad));
  for (const std::string& answer : launch.Hear()) {
    EXPECT_THAT(answer,
                HasSubstr("partial_batches is kDrop in process(es) 2; kPad in process(es) "));
  }
}

TEST(ConnectedProcesses, ReduceAndGatherTheSameBits) {
  Launch launch;
  launch.Say("reduce");
  // Rank r has rows r … 2r.
  int64_t rows = 0;
  int64_t sum = 0;
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    for (int64_t row = rank; row <= 2 * rank; ++row) {
      ++rows;
      sum += row;
    }
  }
  EXPECT_THAT(launch.Hear(), ::testing::Each(absl::StrCat("28 1.75 8 28 ", rows, " ", sum)));
}

// Brings all ranks but `rank` into a step that it does not make.
void LetAllWaitFor(Launch& launch, size_t rank) {
  for (size_t each = 0; each < kRanks; ++each) launch[each].Say(each == rank ? "hold" : "wait");
  EXPECT_THAT(launch.Hear(), ::testing::Each("is there"));
}

void ExpectItsEndIsHeard(Launch& launch, size_t rank, const std::string& how) {
  for (size_t other = 0; other < kRanks; ++other) {
    if (other == rank) continue;
    EXPECT_THAT(launch[other].Hear(),
                StartsWith(absl::StrCat("UNAVAILABLE: rank ", rank, " is gone: ", how)));
  }
}

// The allowed silence is longer than this test, so the others notice the broken connection.
TEST(LostProcesses, TheOthersHearWhichProcessWasKilled) {
  Launch launch;
  LetAllWaitFor(launch, 3);
  launch[3].Kill();
  ExpectItsEndIsHeard(launch, 3, "its connection");
}

TEST(LostProcesses, TheFirstOneIsNoException) {
  Launch launch;
  LetAllWaitFor(launch, 0);
  launch[0].Kill();
  ExpectItsEndIsHeard(launch, 0, "its connection");
}

TEST(LostProcesses, ASilentProcessIsGoneAfterTheGivenTime) {
  Launch launch(/*silence_ms=*/3000);
  LetAllWaitFor(launch, 5);
  launch[5].Stop();
  ExpectItsEndIsHeard(launch, 5, "nothing was received from it for 3000 ms");
}

}  // namespace
}  // namespace penstock
