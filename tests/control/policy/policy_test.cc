// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/policy/fair_shares.h"
#include "control/policy/leases.h"
#include "control/policy/placing.h"
#include "control/policy/splits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/server.h"

namespace penstock::control {
namespace {

namespace p = ::penstock::protocol;
using ::testing::ElementsAre;

// --- Splits ------------------------------------------------------------------------

TEST(Splits, APermutationHandsOutEachNumberOnce) {
  for (int64_t count : {1, 2, 3, 5, 8, 17, 100, 1000, 1025}) {
    for (uint64_t key = 0; key < 20; ++key) {
      std::set<int64_t> seen;
      for (int64_t k = 0; k < count; ++k) {
        const int64_t split = PermutedSplit(key, count, k);
        ASSERT_GE(split, 0);
        ASSERT_LT(split, count);
        seen.insert(split);
      }
      ASSERT_EQ(seen.size(), static_cast<size_t>(count)) << "key " << key;
    }
  }
}

TEST(Splits, HugeCountsArePermutedToo) {
  const int64_t count = INT64_MAX;
  std::set<int64_t> seen;
  for (int64_t k = count - 1000; k < count; ++k) seen.insert(PermutedSplit(1, count, k));
  EXPECT_EQ(seen.size(), 1000u);
}

// Each number comes first about equally often.
TEST(Splits, KeysGiveUnrelatedOrders) {
  std::vector<int> first(10);
  for (uint64_t key = 0; key < 10'000; ++key) {
    ++first[static_cast<size_t>(PermutedSplit(PermutationKey(key, 0, {}), 10, 0))];
  }
  for (int times : first) {
    EXPECT_GT(times, 800);
    EXPECT_LT(times, 1200);
  }
}

TEST(Splits, SeedRepetitionAndProviderEachChangeTheOrder) {
  std::set<uint64_t> keys = {PermutationKey(1, 0, {0, 0}), PermutationKey(2, 0, {0, 0}),
                             PermutationKey(1, 1, {0, 0}), PermutationKey(1, 0, {1, 0}),
                             PermutationKey(1, 0, {0, 1})};
  EXPECT_EQ(keys.size(), 5u);
}

TEST(Splits, BlocksShrinkToOneNearTheEnd) {
  EXPECT_EQ(SplitBlock(8, 1000, 4), 8);
  EXPECT_EQ(SplitBlock(8, 64, 4), 4);
  EXPECT_EQ(SplitBlock(8, 16, 4), 1);
  EXPECT_EQ(SplitBlock(8, 0, 4), 0);
  EXPECT_EQ(SplitBlock(0, 5, 1), 1);
}

// --- A state to decide on ------------------------------------------------------------

class PolicyTest : public ::testing::Test {
 protected:
  static constexpr IterationId kIteration{1};

  void Make(ShardingPolicy mode, int64_t splits, bool shuffled = false, JobTerms terms = {},
            bool ends = true) {
    terms.mode = mode;
    auto dataset = std::make_shared<const DatasetRecord>(DatasetRecord{
        "1000", "", {.ends = ends, .plan = {{.count = splits, .shuffled = shuffled}}}});
    state_.Apply(DatasetRegistered{dataset});
    state_.Apply(JobCreated{{.id = JobId(1), .name = "job", .dataset = dataset, .terms = terms}});
    state_.Apply(IterationCreated{kIteration, JobId(1), 0});
    context_ = p::IterationContext();
  }
  void AddWorker(uint64_t id, int permits) {
    state_.Apply(WorkerRegistered{{.id = WorkerId(id), .permits = permits}});
    usable_.push_back(UsableOf(state_.workers.at(WorkerId(id))));
  }
  PartitionId Open() {
    const PartitionId id(iteration().record.partitions.size() + 1);
    state_.Apply(IterationAltered{kIteration, p::PartitionOpened{id}});
    context_.partitions.resize(id.value());
    return id;
  }
  void Assign(PartitionId partition, WorkerId worker) {
    const Placement placement = iteration().record.partition(partition).placement;
    state_.Apply(IterationAltered{kIteration, p::PartitionAssigned{partition, placement, worker}});
  }
  void Place(uint64_t worker) { Assign(Open(), WorkerId(worker)); }
  void Raise(PartitionId partition) {
    const Placement now = iteration().record.partition(partition).placement;
    state_.Apply(
        IterationAltered{kIteration, p::PlacementRaised{partition, Placement(now.value() + 1)}});
  }
  const IterationState& iteration() const { return state_.iterations.at(kIteration); }
  SplitRequest Ask(uint64_t partition, int64_t first, int32_t wanted) {
    return {{kIteration, PartitionId(partition), Placement(1)}, 0, 0, first, wanted};
  }
  absl::StatusOr<SplitDecision> Decide(const SplitRequest& request) {
    return DecideSplits(state_.jobs.at(JobId(1)), iteration(), request);
  }

  WorkerId Choose(std::vector<WorkerId> avoid = {}) {
    return ChooseWorker(state_, iteration(), PartitionCounts(state_, iteration(), context_),
                        PartitionId(1), usable_, avoid);
  }
  std::vector<PartitionId> Relieved() {
    return PartitionsToRelieve(state_, iteration(), context_, usable_);
  }

  State state_;
  p::IterationContext context_;
  std::vector<UsableWorker> usable_;
};

TEST_F(PolicyTest, AllPartitionsTogetherGetEachSplitOnce) {
  Make(ShardingPolicy::kDynamic, 103, /*shuffled=*/true);
  Open();
  Open();
  Open();
  std::multiset<int64_t> all;
  std::vector<int64_t> had(3);
  std::vector<bool> done(3);
  for (int turn = 0; !(done[0] && done[1] && done[2]); ++turn) {
    const auto partition = static_cast<size_t>(turn % 3);
    if (done[partition]) continue;
    auto decision = Decide(Ask(partition + 1, had[partition], 8));
    ASSERT_TRUE(decision.ok());
    if (decision->given) state_.Apply(*decision->given);
    all.insert(decision->answer.numbers.begin(), decision->answer.numbers.end());
    had[partition] += static_cast<int64_t>(decision->answer.numbers.size());
    done[partition] = decision->answer.no_more;
  }
  EXPECT_EQ(all.size(), 103u);
  EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 103u);
}

// However it came about: the record is in the journal and comes back with it.
TEST_F(PolicyTest, ARecordOfMoreSplitsThanThereAreEndsItsJob) {
  for (const bool shuffled : {false, true}) {
    state_ = State();
    Make(ShardingPolicy::kDynamic, 10, shuffled);
    Open();
    for (const int64_t given : {int64_t{-6}, int64_t{11}}) {
      state_.iterations.at(kIteration).handed_out[{0, 0}] = given;
      const absl::Status wrong = Decide(Ask(1, 0, 1)).status();
      EXPECT_EQ(wrong.code(), absl::StatusCode::kDataLoss);
      EXPECT_THAT(std::string(wrong.message()), ::testing::HasSubstr("start the job again"));
    }
  }
}

TEST_F(PolicyTest, UnderAFixedOrderSplitsDoNotDependOnRequests) {
  Make(ShardingPolicy::kDynamic, 103, /*shuffled=*/true, {.deterministic = true, .partitions = 3});
  for (int i = 0; i < 3; ++i) Open();
  const uint64_t permutation = PermutationKey(0, 0, {0, 0});
  for (uint64_t partition : {3, 1, 2}) {
    std::vector<int64_t> numbers;
    for (bool done = false; !done;) {
      auto decision = Decide(Ask(partition, static_cast<int64_t>(numbers.size()), 8));
      ASSERT_TRUE(decision.ok());
      ASSERT_TRUE(decision->given.has_value());
      state_.Apply(*decision->given);
      numbers.insert(numbers.end(), decision->answer.numbers.begin(),
                     decision->answer.numbers.end());
      done = decision->answer.no_more;
    }
    std::vector<int64_t> expected;
    for (int64_t k = static_cast<int64_t>(partition) - 1; k < 103; k += 3) {
      expected.push_back(PermutedSplit(permutation, 103, k));
    }
    EXPECT_EQ(numbers, expected);
  }
}

TEST_F(PolicyTest, UnderAFixedOrderThereAreAsManyPartitionsAsItNames) {
  Make(ShardingPolicy::kDynamic, 2, false, {.deterministic = true, .partitions = 5});
  EXPECT_EQ(PartitionsToOpen(state_, iteration(), CapacityOf(usable_)), 5);
  for (int i = 0; i < 5; ++i) Open();
  AddWorker(1, 16);
  EXPECT_EQ(PartitionsToOpen(state_, iteration(), CapacityOf(usable_)), 0);
}

TEST_F(PolicyTest, ASplitAskedForAgainIsTheSame) {
  Make(ShardingPolicy::kDynamic, 10);
  Open();
  auto first = Decide(Ask(1, 0, 3));
  state_.Apply(*first->given);
  auto again = Decide(Ask(1, 0, 3));
  EXPECT_EQ(again->answer, first->answer);
  EXPECT_FALSE(again->given.has_value());
}

TEST_F(PolicyTest, ARequestForAllSplitsOfAHugeSourceGetsSome) {
  constexpr int32_t kAll = std::numeric_limits<int32_t>::max();
  for (const JobTerms& terms : {JobTerms(), JobTerms{.deterministic = true, .partitions = 1}}) {
    state_ = State();
    Make(ShardingPolicy::kDynamic, int64_t{1} << 40, /*shuffled=*/false, terms);
    Open();
    const auto decision = Decide(Ask(1, 0, kAll));
    ASSERT_TRUE(decision.ok()) << decision.status();
    EXPECT_EQ(decision->answer.numbers.size(), 4096u);
    EXPECT_FALSE(decision->answer.no_more);
  }
}

TEST_F(PolicyTest, SplitsThatCannotBeAskedForAreRefused) {
  Make(ShardingPolicy::kDynamic, 10);
  Open();
  EXPECT_EQ(Decide(Ask(1, 5, 1)).status().code(), absl::StatusCode::kOutOfRange);
  SplitRequest other = Ask(1, 0, 1);
  other.provider = 3;
  EXPECT_EQ(Decide(other).status().code(), absl::StatusCode::kInvalidArgument);
}

// --- Placing -----------------------------------------------------------------------

TEST_F(PolicyTest, DynamicOpensAPartitionPerPermit) {
  Make(ShardingPolicy::kDynamic, 100);
  EXPECT_EQ(PartitionsToOpen(state_, iteration(), CapacityOf(usable_)), 1);
  AddWorker(1, 2);
  AddWorker(2, 1);
  EXPECT_EQ(PartitionsToOpen(state_, iteration(), CapacityOf(usable_)), 3);
  Open();
  EXPECT_EQ(PartitionsToOpen(state_, iteration(), CapacityOf(usable_)), 2);
}

TEST_F(PolicyTest, DynamicOpensNoMoreThanThereAreSplitsLeft) {
  Make(ShardingPolicy::kDynamic, 2);
  AddWorker(1, 5);
  EXPECT_EQ(PartitionsToOpen(state_, iteration(), CapacityOf(usable_)), 2);
  Open();
  state_.Apply(SplitsGiven{{kIteration, PartitionId(1)}, {0, 0, 0, {0, 1}, true}});
  EXPECT_EQ(PartitionsToOpen(state_, iteration(), CapacityOf(usable_)), 0);
}

TEST_F(PolicyTest, OffOpensAPartitionPerWorker) {
  Make(ShardingPolicy::kOff, 0);
  AddWorker(1, 4);
  AddWorker(2, 4);
  EXPECT_EQ(PartitionsToOpen(state_, iteration(), CapacityOf(usable_)), 2);
  Open();
  Open();
  Open();
  EXPECT_EQ(PartitionsToOpen(state_, iteration(), CapacityOf(usable_)), 0);
}

TEST_F(PolicyTest, TheWorkerWithTheFewestPartitionsPerPermitIsChosen) {
  Make(ShardingPolicy::kDynamic, 100);
  EXPECT_EQ(Choose(), WorkerId());
  AddWorker(1, 1);
  AddWorker(2, 4);
  Place(1);
  Place(2);
  EXPECT_EQ(Choose(), WorkerId(2));
  EXPECT_EQ(Choose({WorkerId(2)}), WorkerId(1));
}

TEST_F(PolicyTest, PartitionsThatHaveEndedDoNotCountForAWorker) {
  Make(ShardingPolicy::kDynamic, 100);
  AddWorker(1, 1);
  AddWorker(2, 1);
  Place(1);
  Place(1);
  Place(2);
  EXPECT_EQ(Choose(), WorkerId(2));
  context_.partitions[0].ended = context_.partitions[1].ended = 5;
  EXPECT_EQ(Choose(), WorkerId(1));
}

TEST_F(PolicyTest, AWorkerIsGivenNoMoreThanItMayHoldOpenUntilSomeHaveEnded) {
  Make(ShardingPolicy::kDynamic, 100);
  AddWorker(1, 2);
  for (int64_t i = 0; i < 2 * kMostPerPermit; ++i) {
    EXPECT_EQ(Choose(), WorkerId(1));
    Place(1);
  }
  EXPECT_EQ(Choose(), WorkerId());
  EXPECT_EQ(Choose({WorkerId(3)}), WorkerId(1)) << "one that failed elsewhere does not wait";
  context_.partitions[1].ended = 5;
  EXPECT_EQ(Choose(), WorkerId(1));
  context_.partitions[1].ended.reset();
  AddWorker(2, 1);
  EXPECT_EQ(Choose(), WorkerId(2));
}

// Others would wait for ever: for an end that does not come, or for elements that are next in
// order.
TEST_F(PolicyTest, AnAwaitedPartitionDoesNotWaitForOthers) {
  for (const auto& [terms, ends] :
       {std::pair(JobTerms{}, false), std::pair(JobTerms{.num_consumers = 2}, true),
        std::pair(JobTerms{.deterministic = true, .partitions = 9}, true)}) {
    state_ = State();
    usable_.clear();
    Make(ShardingPolicy::kDynamic, 100, false, terms, ends);
    AddWorker(1, 1);
    for (int64_t i = 0; i < 3 * kMostPerPermit; ++i) Place(1);
    EXPECT_EQ(Choose(), WorkerId(1));
  }
}

TEST_F(PolicyTest, AJoinerTakesItsShareFromOverloadedWorkers) {
  Make(ShardingPolicy::kOff, 100);
  AddWorker(1, 1);
  for (int i = 0; i < 5; ++i) Place(1);
  EXPECT_THAT(Relieved(), ElementsAre());
  AddWorker(2, 1);
  EXPECT_THAT(Relieved(), ElementsAre(PartitionId(1), PartitionId(2)));
  context_.partitions[0].ended = 5;
  EXPECT_THAT(Relieved(), ElementsAre(PartitionId(2), PartitionId(3)));
  AddWorker(3, 4);  // with four times the permits, four times the share
  EXPECT_THAT(Relieved(), ElementsAre(PartitionId(2), PartitionId(3), PartitionId(4)));
}

TEST_F(PolicyTest, AWorkerWithEnoughPermitsKeepsItsPartitions) {
  Make(ShardingPolicy::kOff, 100);
  AddWorker(1, 2);
  Place(1);
  Place(1);
  AddWorker(2, 4);
  EXPECT_THAT(Relieved(), ElementsAre());
}

TEST_F(PolicyTest, MovingRelievedPartitionsLeavesNothingToRelieve) {
  for (int permits = 1; permits <= 3; ++permits) {
    for (int partitions = 1; partitions <= 12; ++partitions) {
      SCOPED_TRACE(absl::StrCat("permits ", permits, " partitions ", partitions));
      state_ = State();
      usable_.clear();
      Make(ShardingPolicy::kOff, 100, false, {}, /*ends=*/false);  // no partition waits for others
      AddWorker(1, 1);
      for (int i = 0; i < partitions; ++i) Place(1);
      AddWorker(2, permits);
      AddWorker(3, 1);
      const std::vector<PartitionId> relieved = Relieved();
      for (PartitionId partition : relieved) Raise(partition);
      for (PartitionId partition : relieved) {
        Assign(partition,
               ChooseWorker(state_, iteration(), PartitionCounts(state_, iteration(), context_),
                            partition, usable_));
      }
      EXPECT_THAT(Relieved(), ElementsAre());
    }
  }
}

TEST_F(PolicyTest, SeveralPlacementsKeepTheCountsUpToDate) {
  Make(ShardingPolicy::kOff, 100, false, {}, /*ends=*/false);  // no partition waits for others
  for (uint64_t id : {1, 2, 3}) AddWorker(id, static_cast<int>(id));
  Place(2);
  PartitionCounts counts(state_, iteration(), context_);
  for (int i = 0; i < 12; ++i) {
    const PartitionId partition = Open();
    const WorkerId chosen = ChooseWorker(state_, iteration(), counts, partition, usable_);
    EXPECT_EQ(chosen,
              ChooseWorker(state_, iteration(), PartitionCounts(state_, iteration(), context_),
                           partition, usable_));
    Assign(partition, chosen);
    counts.CountAgain(chosen);
  }
}

TEST_F(PolicyTest, NothingMayBeRelievedOnlyWhereNothingIs) {
  std::mt19937_64 random(1);
  int none = 0;
  for (int round = 0; round < 500; ++round) {
    state_ = State();
    usable_.clear();
    Make(ShardingPolicy::kOff, 100, false, {}, /*ends=*/false);
    int least = std::numeric_limits<int>::max();
    const uint64_t workers = 1 + random() % 4;
    for (uint64_t id = 1; id <= workers; ++id) {
      const int permits = 1 + static_cast<int>(random() % 3);
      AddWorker(id, permits);
      least = std::min(least, permits);
    }
    for (uint64_t n = random() % 9; n > 0; --n) Place(1 + random() % workers);
    if (random() % 5 == 0) Open();
    for (auto& partition : context_.partitions)
      if (random() % 4 == 0) partition.ended = 1;
    if (MayRelieve(state_, iteration(), least)) continue;
    ++none;
    ASSERT_THAT(Relieved(), ElementsAre()) << "round " << round;
  }
  EXPECT_GT(none, 50);
  EXPECT_LT(none, 450);
}

TEST_F(PolicyTest, EndedPartitionsCountOnlyAmongAllPartitions) {
  Make(ShardingPolicy::kOff, 100);
  AddWorker(1, 1);
  AddWorker(2, 1);
  for (uint64_t worker : {1, 1, 1, 2}) Place(worker);
  context_.partitions[1].ended = 5;
  const PartitionCounts counts(state_, iteration(), context_);
  EXPECT_EQ(counts.OfIteration(WorkerId(1)), 2);
  EXPECT_EQ(counts.OfAll(WorkerId(1)), 3);
  EXPECT_EQ(counts.OfIteration(WorkerId(2)), 1);
  EXPECT_EQ(counts.OfIteration(WorkerId(3)), 0);
}

TEST_F(PolicyTest, TheLastPartitionAtWorkIsSpared) {
  Make(ShardingPolicy::kDynamic, 100);
  EXPECT_EQ(PartitionToSpare(state_, iteration(), context_), std::nullopt);
  for (int i = 0; i < 3; ++i) Place(1);
  Open();
  EXPECT_EQ(PartitionToSpare(state_, iteration(), context_), PartitionId(3));
  context_.partitions[2].ended = 5;
  EXPECT_EQ(PartitionToSpare(state_, iteration(), context_), PartitionId(2));
  Raise(PartitionId(2));
  EXPECT_EQ(PartitionToSpare(state_, iteration(), context_), PartitionId(1));
  state_.Apply(IterationAltered{kIteration, p::ReaderJoined{ClientId(1), Incarnation(1)}});
  context_.present = {false};
  EXPECT_EQ(PartitionToSpare(state_, iteration(), context_), std::nullopt);
}

TEST_F(PolicyTest, APartitionThatIsReadTogetherWithOthersIsNotSpared) {
  for (const JobTerms& terms :
       {JobTerms{.num_consumers = 2}, JobTerms{.deterministic = true, .partitions = 9}}) {
    state_ = State();
    Make(ShardingPolicy::kDynamic, 100, false, terms);
    Place(1);
    EXPECT_EQ(PartitionToSpare(state_, iteration(), context_), std::nullopt);
  }
}

TEST_F(PolicyTest, NothingIsRelievedWhileAPartitionWaitsOrAReaderIsAway) {
  Make(ShardingPolicy::kOff, 100);
  AddWorker(1, 1);
  Place(1);
  Place(1);
  AddWorker(2, 1);
  EXPECT_THAT(Relieved(), ElementsAre(PartitionId(1)));
  state_.Apply(IterationAltered{kIteration, p::ReaderJoined{ClientId(5), Incarnation(1)}});
  context_ = p::MakeIterationContext(iteration().record);
  EXPECT_THAT(Relieved(), ElementsAre());
  context_.present[0] = true;
  EXPECT_THAT(Relieved(), ElementsAre(PartitionId(1)));
  Open();
  EXPECT_THAT(Relieved(), ElementsAre());
}

// --- Leases ------------------------------------------------------------------------

TEST(LeasesTest, TheSilentExpireUnlessTheHolderStoodStill) {
  const absl::Time start = absl::UnixEpoch();
  Leases<int> leases;
  leases.Heard(1, start);
  leases.Heard(2, start + absl::Seconds(8));
  EXPECT_THAT(leases.Expired(start + absl::Seconds(10), absl::Seconds(10)), ElementsAre(1));
  leases.HolderStalled(start + absl::Seconds(30));
  EXPECT_TRUE(leases.Expired(start + absl::Seconds(39), absl::Seconds(10)).empty());
  leases.Forget(1);
  EXPECT_THAT(leases.Expired(start + absl::Seconds(40), absl::Seconds(10)), ElementsAre(2));
}

// Looks at all peers, in place of the order by time.
class PlainLeases {
 public:
  void Heard(int key, absl::Time now) { heard_[key] = now; }
  void Forget(int key) { heard_.erase(key); }
  absl::Duration SilentFor(int key, absl::Time now) const {
    const auto found = heard_.find(key);
    return found == heard_.end() ? absl::ZeroDuration() : now - found->second;
  }
  std::vector<int> Expired(absl::Time now, absl::Duration timeout) const {
    std::vector<int> expired;
    for (const auto& [key, heard] : heard_) {
      if (now - heard >= timeout) expired.push_back(key);
    }
    return expired;
  }
  void HolderStalled(absl::Time to) {
    for (auto& [key, heard] : heard_) heard = std::max(heard, to);
  }

 private:
  std::map<int, absl::Time> heard_;
};

TEST(LeasesTest, RandomSequencesExpireAsIfAllPeersWereLookedAt) {
  constexpr int kPeers = 30;
  std::mt19937 random(46);
  const auto draw = [&](int below) { return static_cast<int>(random() % below); };
  Leases<int> leases;
  PlainLeases plain;
  absl::Time now = absl::UnixEpoch();
  size_t expired = 0;
  for (int step = 0; step < 20'000; ++step) {
    now += absl::Milliseconds(draw(300));
    const int key = draw(kPeers);
    switch (draw(60)) {
      case 0:
        leases.HolderStalled(now);
        plain.HolderStalled(now);
        break;
      case 1:
      case 2:
        leases.Forget(key);
        plain.Forget(key);
        break;
      default:
        leases.Heard(key, now);
        plain.Heard(key, now);
    }
    const absl::Duration timeout = absl::Milliseconds(500 + draw(20'000));
    const std::vector<int> silent = leases.Expired(now, timeout);
    ASSERT_EQ(silent, plain.Expired(now, timeout)) << "step " << step;
    ASSERT_EQ(leases.SilentFor(key, now), plain.SilentFor(key, now)) << "step " << step;
    expired += silent.size();
  }
  EXPECT_GT(expired, 1000u) << "the sequence must let leases expire";
}

TEST(LeaseTimes, AreTheDefaultsThatUsersSee) {
  const DispatcherConfig config;
  EXPECT_EQ(config.client_timeout, kClientTimeout);
  EXPECT_EQ(config.worker_timeout, kWorkerTimeout);
  EXPECT_EQ(config.heartbeat_interval, kHeartbeatInterval);
}

}  // namespace
}  // namespace penstock::control
