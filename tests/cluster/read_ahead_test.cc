// SPDX-License-Identifier: Apache-2.0
// States of pipelines whose nodes after Distribute read ahead. The committed elements are the same
// as without an interruption.
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "penstock/states_of_ranks.h"
#include "tests/cluster/cluster.h"

namespace penstock {
namespace {

constexpr int64_t kReadAheadCount = 2400;

struct Node {
  const char* name;
  Dataset (*behind)(const Dataset& distributed);
};
void PrintTo(const Node& node, std::ostream* out) {
  *out << node.name;
}

Dataset ShuffledBehind(const Dataset& it) {
  return it.Shuffle(50, {.seed = 9});
}
Dataset Prefetched(const Dataset& it) {
  return it.Prefetch(20);
}
Dataset Interleaved(const Dataset& it) {
  return it.Interleave([](Expr x) { return Dataset::FromTensors(x).Repeat(2); },
                       {.cycle_length = 7, .block_length = 1});
}
Dataset Batched(const Dataset& it) {
  return it.Batch(4).Map([](auto x) { return ReduceSum(x, {0}); }).Prefetch(3);
}
Dataset Together(const Dataset& it) {
  return it.Shuffle(30, {.seed = 2}).Map([](auto x) { return x + 1; }, {.num_parallel_calls = 3});
}

// The job's end is the first that is seen, or the other input's.
Dataset ZippedWithLonger(const Dataset& it) {
  return Dataset::Zip({it, Dataset::Range(2 * kReadAheadCount)}).Map([](Expr pair) {
    return pair[0];
  });
}
Dataset ZippedBehind(const Dataset& it) {
  return Dataset::Zip({Dataset::Range(kReadAheadCount), it}).Map([](Expr pair) { return pair[1]; });
}

class ReadAhead : public testing::TestWithParam<Node> {
 protected:
  static Dataset Job(const Cluster& cluster, DeliveryMode delivery = DeterministicOrder()) {
    DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, "read ahead");
    options.delivery = delivery;
    options.ack_mode = AckMode::kOnCommit;
    options.seed = 11;
    return GetParam().behind(Dataset::Range(kReadAheadCount).Distribute(options));
  }
  static std::vector<int64_t> Undisturbed() {
    Cluster cluster(2);
    return ReadAll(Job(cluster));
  }
  static void Read(Iterator& it, int64_t count, std::vector<int64_t>& values) {
    for (int64_t i = 0; i < count; ++i) {
      absl::StatusOr<std::optional<Element>> element = it.Next();
      ASSERT_TRUE(element.ok()) << element.status();
      if (!element->has_value()) return;
      values.push_back((*element)->tensor(0).scalar<int64_t>());
    }
  }

  std::mt19937 random_{7};
};

TEST_P(ReadAhead, AStateIsGoneOnFromElsewhere) {
  const std::vector<int64_t> wanted = Undisturbed();
  std::vector<int64_t> kept;
  std::optional<State> state;
  for (int workers : {2, 3, 1}) {
    Cluster cluster(workers);
    absl::StatusOr<Iterator> it = Job(cluster).MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    if (state.has_value()) {
      const absl::Status restored = it->Restore(MergeRankStates({*state}));
      ASSERT_TRUE(restored.ok()) << restored;
    }
    Read(*it, workers == 1 ? 2 * kReadAheadCount : static_cast<int64_t>(random_() % 200), kept);
    if (workers == 1) break;
    absl::StatusOr<State> saved = it->Save();
    ASSERT_TRUE(saved.ok()) << saved.status();
    state = *std::move(saved);
    std::vector<int64_t> struck_out;
    Read(*it, static_cast<int64_t>(random_() % 30), struck_out);
  }
  EXPECT_EQ(kept, wanted);
}

TEST_P(ReadAhead, ACommittedStateIsGoneOnFromInItsJob) {
  const std::vector<int64_t> wanted = Undisturbed();
  Cluster cluster(2);
  std::vector<int64_t> kept;
  std::optional<State> state;
  for (int life = 0; life < 4; ++life) {
    absl::StatusOr<Iterator> it = Job(cluster).MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    if (state.has_value()) {
      const absl::Status restored = it->Restore(*state);
      ASSERT_TRUE(restored.ok()) << restored;
    }
    if (life == 3) {
      Read(*it, 2 * kReadAheadCount, kept);
      break;
    }
    for (int saves = 0; saves < 3; ++saves) {
      Read(*it, 1 + static_cast<int64_t>(random_() % 60), kept);
      absl::StatusOr<State> saved = it->Save();
      ASSERT_TRUE(saved.ok()) << saved.status();
      const absl::Status committed = it->Commit(*saved);
      ASSERT_TRUE(committed.ok()) << committed;
      state = *std::move(saved);
    }
    std::vector<int64_t> struck_out;
    Read(*it, static_cast<int64_t>(random_() % 30), struck_out);
  }
  EXPECT_EQ(kept, wanted);
}

TEST_P(ReadAhead, NothingIsLeftAfterACommitAtTheEnd) {
  Cluster cluster(1);
  {
    absl::StatusOr<Iterator> it = Job(cluster).MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    std::vector<int64_t> values;
    Read(*it, 3 * kReadAheadCount, values);
    absl::StatusOr<State> last = it->Save();
    ASSERT_TRUE(last.ok()) << last.status();
    const absl::Status committed = it->Commit(*last);
    ASSERT_TRUE(committed.ok()) << committed;
  }
  EXPECT_TRUE(ReadAll(Job(cluster)).empty());
}

INSTANTIATE_TEST_SUITE_P(Nodes, ReadAhead,
                         testing::Values(Node{"Shuffle", ShuffledBehind},
                                         Node{"Prefetch", Prefetched},
                                         Node{"Interleave", Interleaved}, Node{"Batch", Batched},
                                         Node{"ShuffleAndMap", Together},
                                         Node{"ZipWithLonger", ZippedWithLonger},
                                         Node{"ZipBehind", ZippedBehind}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ReadAheadInNoOrder, IsRefusedWithTheWayOut) {
  Cluster cluster(1);
  DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, "no order");
  options.ack_mode = AckMode::kOnCommit;
  absl::StatusOr<Iterator> it =
      Dataset::Range(500).Distribute(options).Shuffle(50, {.seed = 1}).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(it->Next().ok());
  const absl::Status status = it->Save().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("set order = kDeterministic"));
}

}  // namespace
}  // namespace penstock
