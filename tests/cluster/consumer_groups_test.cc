// SPDX-License-Identifier: Apache-2.0
// Groups of consumers that get the same elements of a coordinated read.
#include <atomic>
#include <numeric>

#include "dataplane/memory/copied.h"
#include "include/status_macros.h"
#include "penstock/expr.h"
#include "penstock/register.h"
#include "penstock/states_of_ranks.h"
#include "tests/cluster/consumers.h"

namespace penstock {
namespace {

constexpr int64_t kGroupsValues = 16 << 10;  // in a large element: 128 KiB
constexpr int64_t kGroupsBytes = kGroupsValues * int64_t{sizeof(int64_t)};

std::atomic<int64_t>& PreparedForGroups() {
  static std::atomic<int64_t> prepared{0};
  return prepared;
}
absl::Status MakeLarge(CallContext& call) {
  ++PreparedForGroups();
  ASSIGN_OR_RETURN(absl::Span<int64_t> out, call.OutputAs<int64_t>(0, {kGroupsValues}));
  std::iota(out.begin(), out.end(), call.inputs()[0].scalar<int64_t>());
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("make_large_for_groups", 1, Dense(kInt64, {kGroupsValues}), MakeLarge);

Dataset LargeForGroups(int64_t count) {
  return Dataset::Range(count).Map([](Expr x) { return Call("make_large_for_groups", x); },
                                   {.num_parallel_calls = 1});
}

// Returns all members of `groups` groups of `size`, group by group.
std::vector<Iterator> Members(const Cluster& cluster, int64_t groups, int64_t size,
                              const Dataset& dataset,
                              const std::function<void(DistributeOptions&)>& set = nullptr) {
  std::vector<Iterator> members;
  for (int64_t i = 0; i < groups * size; ++i) {
    DistributeOptions options =
        Consumer(cluster, i / size, groups, ShardingPolicy::kDynamic, "groups");
    std::get<CoordinatedRounds>(options.delivery).group = {size, i % size};
    if (set) set(options);
    absl::StatusOr<Iterator> it = dataset.Distribute(options).MakeIterator();
    EXPECT_TRUE(it.ok()) << it.status();
    members.push_back(*std::move(it));
  }
  return members;
}

// Reads the first element of each member in parallel: rounds begin when all are there.
std::vector<Element> FirstOfAll(std::vector<Iterator>& members) {
  std::vector<std::future<Element>> reading;
  for (Iterator& it : members) {
    reading.push_back(std::async(std::launch::async, [&it] {
      absl::StatusOr<std::optional<Element>> element = it.Next();
      EXPECT_TRUE(element.ok() && element->has_value()) << element.status();
      return element.ok() && element->has_value() ? **std::move(element) : Element();
    }));
  }
  std::vector<Element> first;
  for (auto& element : reading) first.push_back(element.get());
  return first;
}

// Returns the reads of member `m` of each group.
std::vector<Read> OfMember(const std::vector<Read>& reads, int64_t size, int64_t m) {
  std::vector<Read> of;
  for (size_t i = static_cast<size_t>(m); i < reads.size(); i += static_cast<size_t>(size)) {
    of.push_back(reads[i]);
  }
  return of;
}

// Expects that the members of a group saw the same values in the same rounds.
void ExpectGroupsAgree(const std::vector<Read>& reads, size_t size) {
  for (size_t i = 0; i < reads.size(); ++i) {
    const Read& first = reads[i / size * size];
    ASSERT_EQ(reads[i].rounds.size(), first.rounds.size());
    for (size_t r = 0; r < first.rounds.size(); ++r) {
      ASSERT_EQ(reads[i].rounds[r].value, first.rounds[r].value) << "round " << r;
      ASSERT_EQ(reads[i].rounds[r].token.pad, first.rounds[r].token.pad) << "round " << r;
    }
  }
}

struct Groups {
  int64_t groups;
  int64_t size;
  const char* protocol;
};
class ConsumerGroups : public ::testing::TestWithParam<Groups> {};

TEST_P(ConsumerGroups, EachGroupHasItsElementsAndEachMemberAllOfThem) {
  const auto [groups, size, protocol] = GetParam();
  Cluster cluster(2);
  auto its = Members(
      cluster, groups, size, Numbers(403),
      [&, &said = protocol](DistributeOptions& options) { options.data_transfer_protocol = said; });
  const std::vector<Read> reads = ReadTogether(its);
  for (const Read& read : reads) EXPECT_TRUE(read.error.ok()) << read.error;
  ExpectAligned(reads, 0, /*remainder_rounds=*/2);
  ExpectGroupsAgree(reads, static_cast<size_t>(size));
  for (int64_t m = 0; m < size; ++m) EXPECT_EQ(Values(OfMember(reads, size, m)), UpTo(403));
}
INSTANTIATE_TEST_SUITE_P(Sizes, ConsumerGroups,
                         ::testing::Values(Groups{1, 2, "shm"}, Groups{2, 2, "shm"},
                                           Groups{2, 3, "tcp"}, Groups{3, 1, "shm"},
                                           Groups{2, 2, "grpc"}));

TEST(ConsumerGroupsOverShm, AnElementIsPreparedAndSentOnceAndReadByBothWhereItLies) {
  constexpr int64_t kCount = 200;
  Cluster cluster(1);
  auto its = Members(cluster, 1, 2, LargeForGroups(kCount),
                     [](DistributeOptions& options) { options.data_transfer_protocol = "shm"; });
  const auto take = [&](int64_t value) {
    for (Iterator& it : its) {
      absl::StatusOr<std::optional<Element>> element = it.Next();
      ASSERT_TRUE(element.ok() && element->has_value()) << element.status();
      const absl::Span<const int64_t> values = (*element)->tensor(0).data<int64_t>();
      ASSERT_EQ(values[0], value);
      ASSERT_EQ(values[kGroupsValues - 1], value + kGroupsValues - 1);
    }
  };
  const int64_t before = PreparedForGroups();
  ASSERT_TRUE(FirstOfAll(its)[1]);  // elements made before both had links may have been copied
  const int64_t copied = BytesCopied();
  for (int64_t value = 1; value < kCount; ++value) take(value);
  for (Iterator& it : its) EXPECT_FALSE(it.Next()->has_value());
  EXPECT_EQ(PreparedForGroups() - before, kCount);
  EXPECT_LT(BytesCopied() - copied, 4 * kGroupsBytes);
}

TEST(ConsumerGroupsOverShm, AMembersWritesStayInItsOwnElement) {
  Cluster cluster(1);
  auto its = Members(cluster, 1, 2, LargeForGroups(50),
                     [](DistributeOptions& options) { options.data_transfer_protocol = "shm"; });
  ASSERT_TRUE(FirstOfAll(its)[1]);
  for (int64_t value = 1; value < 50; ++value) {
    Element first = **its[0].Next();
    first.mutable_data<int64_t>(0)[7] = -1;
    const Element second = **its[1].Next();
    ASSERT_EQ(second.tensor(0).data<int64_t>()[7], value + 7);
  }
}

// Two passes of 11 elements for 4 groups. The remainders of 3 and 3 make one whole round, and 2
// elements of another.
TEST(ConsumerGroup, RemaindersAreOfGroups) {
  for (const RemainderPolicy policy : {RemainderPolicy::kPad, RemainderPolicy::kDrop}) {
    Cluster cluster(2);
    auto its = Members(cluster, 4, 2, Numbers(11), [&](DistributeOptions& options) {
      options.processing_mode = ShardingPolicy::kOff;
      std::get<CoordinatedRounds>(options.delivery).remainder_policy = policy;
    });
    const std::vector<Read> reads = ReadTogether(its);
    ExpectGroupsAgree(reads, 2);
    const bool pads = policy == RemainderPolicy::kPad;
    for (int64_t m = 0; m < 2; ++m) {
      EXPECT_EQ(Values(OfMember(reads, 2, m)).size(), pads ? 22 : 20);
      EXPECT_EQ(Values(OfMember(reads, 2, m), /*pads=*/true).size(), pads ? 24 : 20);
    }
  }
}

TEST(ConsumerGroup, AWorkerThatGoesTakesNothingWithIt) {
  Cluster cluster(2);
  auto its = Members(cluster, 2, 2, Numbers(1000));
  const std::vector<Read> reads = ReadTogether(its, INT64_MAX, [&](int64_t step) {
    if (step == 100) cluster.RemoveWorker(0);
  });
  ExpectAligned(reads, 0, /*remainder_rounds=*/2);
  ExpectGroupsAgree(reads, 2);
  for (int64_t m = 0; m < 2; ++m) EXPECT_EQ(Values(OfMember(reads, 2, m)), UpTo(1000));
}

TEST(ConsumerGroup, AMemberComesBackAloneWhereTheOthersWait) {
  constexpr int64_t kEach = 30;
  Cluster cluster(2);
  const auto committed = [](DistributeOptions& options) { options.ack_mode = AckMode::kOnCommit; };
  auto its = Members(cluster, 1, 2, Numbers(300), committed);
  std::vector<int64_t> of_first;
  for (size_t dies = 0; dies < 2; ++dies) {
    std::vector<Read> reads = ReadTogether(its, kEach);
    ExpectGroupsAgree(reads, 2);
    for (const int64_t value : Values({reads[0]})) of_first.push_back(value);
    std::vector<State> states;
    for (Iterator& it : its) states.push_back(*it.Save());
    for (size_t i = 0; i < its.size(); ++i) ASSERT_TRUE(its[i].Commit(states[i]).ok());
    DistributeOptions options = Consumer(cluster, 0, 1, ShardingPolicy::kDynamic, "groups");
    std::get<CoordinatedRounds>(options.delivery).group = {2, static_cast<int64_t>(dies)};
    committed(options);
    its[dies] = *Numbers(300).Distribute(options).MakeIterator();
    ASSERT_TRUE(its[dies].Restore(states[dies]).ok());
    // The next round is there for it while the other waits, and after that for the other.
    std::vector<Read> round(2);
    round[dies] = ReadRounds(its[dies], 1);
    round[1 - dies] = ReadRounds(its[1 - dies], 1);
    ExpectGroupsAgree(round, 2);
    for (const int64_t value : Values({round[0]})) of_first.push_back(value);
  }
  const std::vector<Read> rest = ReadTogether(its);
  for (const Read& read : rest) EXPECT_TRUE(read.error.ok()) << read.error;
  ExpectGroupsAgree(rest, 2);
  for (const int64_t value : Values({rest[0]})) of_first.push_back(value);
  EXPECT_EQ(Sorted(of_first), UpTo(300));
}

TEST(ConsumerGroup, AllGoOnFromTheirStatesOnAnotherServiceAndInGroupsOfThatSizeOnly) {
  constexpr int64_t kEach = 40;
  const auto committed = [](DistributeOptions& options) { options.ack_mode = AckMode::kOnCommit; };
  std::vector<State> states;
  std::vector<int64_t> of_first;
  {
    Cluster cluster(2);
    auto its = Members(cluster, 2, 2, Numbers(500), committed);
    const std::vector<Read> reads = ReadTogether(its, kEach);
    of_first = Values(OfMember(reads, 2, 0));
    for (Iterator& it : its) states.push_back(*it.Save());
  }
  Cluster cluster(3);
  auto wrong = Members(cluster, 2, 3, Numbers(500), committed);
  EXPECT_THAT(std::string(wrong[0].Restore(MergeRankStates(states)).message()),
              ::testing::HasSubstr("consumer_group"));
  auto its = Members(cluster, 3, 2, Numbers(500), committed);
  for (Iterator& it : its) {
    const absl::Status restored = it.Restore(MergeRankStates(states));
    ASSERT_TRUE(restored.ok()) << restored;
  }
  const std::vector<Read> rest = ReadTogether(its);
  for (const Read& read : rest) EXPECT_TRUE(read.error.ok()) << read.error;
  ExpectGroupsAgree(rest, 2);
  for (const int64_t value : Values(OfMember(rest, 2, 0))) of_first.push_back(value);
  EXPECT_EQ(Sorted(of_first), UpTo(500));
}

TEST(ConsumerGroup, GroupsOfAnotherSizeUnderTheNameAreRefused) {
  Cluster cluster(1);
  auto its = Members(cluster, 2, 2, Numbers(100));
  DistributeOptions options = Consumer(cluster, 0, 1, ShardingPolicy::kDynamic, "groups");
  std::get<CoordinatedRounds>(options.delivery).group = {4, 0};
  auto other = Numbers(100).Distribute(options).MakeIterator();
  ASSERT_TRUE(other.ok());
  ASSERT_EQ(ReadTogether(its, 1).size(), 4);
  EXPECT_THAT(std::string(other->Next().status().message()),
              ::testing::HasSubstr("consumer_group's size"));
}

}  // namespace
}  // namespace penstock
