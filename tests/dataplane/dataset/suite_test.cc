// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/dataset/suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "dataplane/dataset/graph/definition.h"
#include "dataplane/dataset/graph/registry.h"

namespace penstock::suite {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using Strings = std::vector<std::string>;

// Every how many positions and divisions are tested: 1, or PENSTOCK_EVERY.
size_t Every() {
  const char* every = std::getenv("PENSTOCK_EVERY");
  return every ? std::strtoul(every, nullptr, 10) : 1;
}

class Suite : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override { ASSERT_TRUE(dataset_.status().ok()) << dataset_.status(); }

  Strings Whole(Reading::Options options = {}) {
    return Reading(dataset_, options).Rest(GetParam().limit);
  }

  // Reads on from every position that a reading of `options` saves.
  void ExpectExactRestores(const Reading::Options& options) {
    const Strings whole = Whole(options);
    std::vector<ReplayPoint> states;
    Reading reading(dataset_, options);
    for (size_t i = 0;; ++i) {
      states.push_back(reading.SaveForReplay());
      if (i == whole.size()) break;
      ASSERT_EQ(reading.Next(), whole[i]) << "saving changed element " << i;
    }
    for (size_t i = 0; i < states.size(); i += Every()) {
      Reading restored(dataset_, options);
      const absl::Status status = restored.Restore(states[i]);
      ASSERT_TRUE(status.ok()) << "at " << i << ": " << status;
      const Strings rest = restored.Rest(static_cast<int64_t>(whole.size() - i));
      ASSERT_THAT(rest, ElementsAreArray(whole.begin() + i, whole.end())) << "restored at " << i;
    }
  }

  const Dataset dataset_ = GetParam().make();
};

TEST_P(Suite, SameSeedSameOrder) {
  EXPECT_EQ(Whole(), Whole());
}

TEST_P(Suite, TheEndStaysTheEnd) {
  Reading reading(dataset_, {});
  const int64_t limit = GetParam().limit;
  if (static_cast<int64_t>(reading.Rest(limit).size()) == limit) GTEST_SKIP() << "has no end";
  EXPECT_EQ(reading.Next(), "end");
  EXPECT_EQ(reading.Next(), "end");
}

TEST_P(Suite, CardinalityIsTrue) {
  const Cardinality promised = dataset_.cardinality();
  const int64_t limit = GetParam().limit;
  const auto found = static_cast<int64_t>(Whole().size());
  if (promised == kUnknown) GTEST_SKIP() << "promises nothing";
  EXPECT_EQ(found, promised == kInfinite ? limit : std::min<int64_t>(promised, limit));
}

TEST_P(Suite, ParallelismChangesNothing) {
  const Strings one = Whole({.threads = 1});
  EXPECT_EQ(Whole({.threads = 4}), one);
  EXPECT_EQ(Whole({.threads = 16}), one);
}

TEST_P(Suite, RestoresExactlyAtEveryIndex) {
  ExpectExactRestores({.threads = 1});
  ExpectExactRestores({.threads = 4});
}

TEST_P(Suite, RestoresStatesOfRestoredIterators) {
  const Strings whole = Whole();
  if (whole.size() < 4) GTEST_SKIP() << "too short";
  const size_t quarter = whole.size() / 4;
  Reading first(dataset_, {});
  first.Rest(static_cast<int64_t>(quarter));
  Reading second(dataset_, {});
  ASSERT_TRUE(second.Restore(first.Save()).ok());
  second.Rest(static_cast<int64_t>(quarter));
  Reading third(dataset_, {});
  ASSERT_TRUE(third.Restore(second.Save()).ok());
  EXPECT_THAT(third.Rest(static_cast<int64_t>(whole.size() - 2 * quarter)),
              ElementsAreArray(whole.begin() + 2 * quarter, whole.end()));
}

TEST_P(Suite, AStateThatIsCutOffIsRefused) {
  Reading reading(dataset_, {});
  reading.Rest(3);
  const std::string state = reading.Save();
  for (size_t bytes = 0; bytes < state.size(); ++bytes) {
    Reading fresh(dataset_, {});
    EXPECT_FALSE(fresh.Restore(state.substr(0, bytes)).ok()) << bytes << " of " << state.size();
  }
}

TEST_P(Suite, SkipIsAsManyTimesNext) {
  const Strings whole = Whole();
  const auto size = static_cast<int64_t>(whole.size());
  for (int64_t before : {0, 1, 4}) {
    if (before > size) continue;
    for (int64_t skipped : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, size / 2,
                            size - before, size - before + 5}) {
      if (before + skipped > size && size == GetParam().limit) continue;  // not the end
      Reading reading(dataset_, {});
      reading.Rest(before);
      const int64_t passed = std::min(skipped, size - before);
      ASSERT_EQ(reading.Skip(skipped), passed) << "behind " << before;
      ASSERT_THAT(reading.Rest(size - before - passed),
                  ElementsAreArray(whole.begin() + before + passed, whole.end()))
          << "behind " << before << ", skipped " << skipped;
    }
  }
}

TEST_P(Suite, ADefinitionGivesTheSameDataset) {
  const absl::StatusOr<std::string> bytes = Serialize(dataset_);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const absl::StatusOr<Dataset> parsed = ParseDataset(*bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->fingerprint(), dataset_.fingerprint());
  EXPECT_EQ(parsed->element_spec(), dataset_.element_spec());
  EXPECT_EQ(parsed->cardinality(), dataset_.cardinality());
  EXPECT_EQ(Serialize(*parsed).value(), *bytes);
  EXPECT_EQ(Reading(*parsed, {}).Rest(GetParam().limit), Whole());
  EXPECT_EQ(Serialize(GetParam().make()).value(), *bytes) << "made again";
}

TEST_P(Suite, StoppingEndsReading) {
  Reading reading(dataset_, {});
  reading.Rest(2);
  reading.Cancel();
  for (int64_t i = 0; i <= GetParam().limit; ++i) {
    const absl::StatusOr<std::optional<Element>> next = reading.iterator().Next();
    if (absl::IsCancelled(next.status()) || (next.ok() && !next->has_value())) return;
  }
  FAIL() << "still gives elements";
}

TEST_P(Suite, PartitionsAreTogetherTheWhole) {
  if (!GetParam().divides) GTEST_SKIP() << "counts its own elements";
  const absl::StatusOr<SplitPlan> plan = PlanSplits(dataset_, TestFiles());
  ASSERT_TRUE(plan.ok()) << plan.status();
  Strings whole = Reading(dataset_, {}).Parts(GetParam());
  std::sort(whole.begin(), whole.end());
  for (int partitions = 1; partitions <= 7; ++partitions) {
    for (uint64_t split_seed = 0; split_seed < 5; split_seed += Every()) {
      Strings together;
      for (int partition = 1; partition <= partitions; ++partition) {
        Reading reading(dataset_, {.plan = &*plan,
                                   .partitions = partitions,
                                   .partition = partition,
                                   .split_seed = split_seed});
        for (std::string& part : reading.Parts(GetParam())) together.push_back(std::move(part));
      }
      std::sort(together.begin(), together.end());
      ASSERT_EQ(together, whole) << partitions << " partitions, split seed " << split_seed;
    }
  }
}

TEST_P(Suite, BookmarksOfPartitionsReplayExactly) {
  const absl::StatusOr<SplitPlan> plan = PlanSplits(dataset_, TestFiles());
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (int partition = 1; partition <= 3; ++partition) {
    ExpectExactRestores(
        {.plan = &*plan, .partitions = 3, .partition = partition, .split_seed = 11});
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, Suite, ::testing::ValuesIn(AllCases()),
                         [](const auto& info) { return info.param.name; });

// Nodes of layers above have suites there.
TEST(SuiteTable, EveryKindHasACase) {
  std::set<std::string> missing;
  for (const NodeKind* kind : NodeKinds()) missing.insert(kind->op);
  for (const Case& c : AllCases())
    for (const std::string& kind : c.kinds) missing.erase(kind);
  EXPECT_THAT(missing, IsEmpty());
}

}  // namespace

std::vector<Case> AllCases() {
  std::vector<Case> all = SourceCases();
  for (auto* more : {TransformCases, BatchingCases, CombiningCases, PluginCases})
    for (Case& c : more()) all.push_back(std::move(c));
  return all;
}

}  // namespace penstock::suite
