// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/placing/audience_chooser.h"

#include <cstdint>
#include <utility>

#include "gtest/gtest.h"
#include "tests/control/policy/audience_fixture.h"

namespace penstock::control {
namespace {

class AudienceChooserTest : public AudienceFixture {
 protected:
  void SetUp() override {
    for (uint64_t client = 1; client <= 40; ++client) Join(client);
    AssignAll(kRule);
    iteration_.id = IterationId(1);
    Extend(kRule);
    looks_ = chooser_.looks();
  }
  void Extend(const LinkRule& rule) {
    iteration_.record = record_;
    chooser_.Extend(iteration_, context_, rule, [&](const protocol::Decision& decision) {
      for (const protocol::IterationChange& change : decision.changes) {
        Alter(change);
        protocol::Apply(iteration_.record, change);
        chooser_.NoteChange(iteration_.id, change);
      }
    });
  }
  void End(size_t partition) {
    context_.partitions[partition].ended = 10;
    ++context_.placing_changes;
    chooser_.NoteEnded({iteration_.id, PartitionId(partition + 1)});
  }
  // How often it has looked since the last call.
  int64_t Looks() { return chooser_.looks() - std::exchange(looks_, chooser_.looks()); }

  static constexpr LinkRule kRule{.workers = 300, .max_links = 30};
  IterationState iteration_;
  AudienceChooser chooser_{/*check_kept=*/[] { return true; }};
  int64_t looks_ = 0;
};

// Events of other jobs, and workers that connect, come in thousands.
TEST_F(AudienceChooserTest, LooksOnlyIfAReaderMayNeedMore) {
  Extend(kRule);
  for (int64_t more = 1; more <= 100; ++more)
    Extend({.workers = kRule.workers + more, .max_links = kRule.max_links});
  EXPECT_EQ(Looks(), 0) << "the share is smaller";
  End(0);
  Extend(kRule);
  EXPECT_EQ(Looks(), 0) << "one partition less is enough";
  Join(41);
  Extend(kRule);
  EXPECT_EQ(Looks(), 1);
  EXPECT_GT(Links()[40], 7);
  Extend(kRule);
  EXPECT_EQ(Looks(), 0);
  Alter(protocol::ReaderReplaced{ClientId(3), Incarnation(2), {}});
  Extend(kRule);
  EXPECT_EQ(Looks(), 1) << "many partitions may have waited for its answers";
}

TEST_F(AudienceChooserTest, LooksIfTheShareIsMuchLarger) {
  Extend({.workers = kRule.workers - 1, .max_links = kRule.max_links});
  EXPECT_EQ(Looks(), 0) << "each reader has more than it needs";
  const int64_t before = AllLinks();
  Extend({.workers = kRule.max_links, .max_links = kRule.max_links});
  EXPECT_EQ(Looks(), 1);
  EXPECT_GT(AllLinks(), before);
}

TEST_F(AudienceChooserTest, LooksAgainWhenManyPartitionsHaveEnded) {
  int64_t looks = 0;
  for (size_t n = 0; n < 299; ++n) {
    End(n);
    Extend(kRule);
    looks += Looks();
  }
  EXPECT_GT(looks, 0);
  EXPECT_LT(looks, 200);
  for (size_t reader = 0; reader < 40; ++reader)
    EXPECT_TRUE(record_.partitions.back().MayServe(reader)) << reader;
}

}  // namespace
}  // namespace penstock::control
