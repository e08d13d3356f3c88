// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/iteration_record.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "tests/control/protocol/coordinator_harness.h"

namespace penstock::protocol {
namespace {

TEST(Record, FitsNoChangeOutOfOrder) {
  IterationRecord record;
  EXPECT_FALSE(Fits(record, PlacementRaised{kPartition, Placement(2)}));
  EXPECT_FALSE(Fits(record, PartitionOpened{PartitionId(2)}));
  Apply(record, PartitionOpened{kPartition});
  EXPECT_FALSE(Fits(record, PlacementRaised{kPartition, Placement(1)})) << "it must rise";
  EXPECT_FALSE(Fits(record, PartitionAssigned{kPartition, Placement(2), kWorker}));
  EXPECT_TRUE(Fits(record, PartitionAssigned{kPartition, Placement(1), kWorker}));
  EXPECT_FALSE(Fits(record, ReaderGone{kAnna, ReaderStatus::kExpired}));
  EXPECT_FALSE(Fits(record, IterationReopened{}));
}

TEST(Record, FitsNoEndThatNoPartitionHas) {
  IterationRecord record;
  Apply(record, PartitionOpened{kPartition});
  EXPECT_FALSE(Fits(record, IterationClosed{{-1}}));
  EXPECT_FALSE(Fits(record, IterationClosed{{kMostIndices}}));
  EXPECT_TRUE(Fits(record, IterationClosed{{kMostIndices - 1}}));
}

TEST(Readers, AreFoundHoweverManyJoined) {
  IterationRecord record;
  for (uint64_t client = 1; client <= 100; ++client) {
    ASSERT_FALSE(Fits(record, ReaderGone{ClientId(client), ReaderStatus::kExpired}));
    Apply(record, ReaderJoined{ClientId(client), Incarnation(client)});
    const IterationRecord copy = record;
    for (uint64_t before = 1; before <= client; ++before)
      ASSERT_EQ(copy.FindReader(ClientId(before)), before - 1);
    ASSERT_EQ(copy.FindReader(ClientId(client + 1)), std::nullopt);
    ASSERT_EQ(copy, record);
  }
}

// Readers join, commit, and return with states that contain more, or, as no coordinator allows,
// less.
void ChangeReaders(IterationRecord& record, std::mt19937_64& random) {
  const auto draw = [&](uint64_t below) { return random() % below; };
  const uint64_t readers = record.readers.size();
  if (readers == 0 || draw(20) == 0)
    return Apply(record, ReaderJoined{ClientId(readers + 1), Incarnation(1)});
  const ReaderRecord& reader = record.readers[draw(readers)];
  if (draw(5) == 0) {
    ReaderReplaced replaced{reader.client, Incarnation(2), reader.committed};
    if (draw(3) == 0) {
      replaced.committed.clear();
      const uint64_t kept = draw(4);
      for (const auto& [partition, set] : reader.committed)
        if (partition.value() <= kept) replaced.committed.Add(partition, set);
    }
    if (draw(2) == 0) {
      const auto index = static_cast<Index>(draw(50));
      replaced.committed.Add(PartitionId(2), IndexSet::Of(index, index + 1));
    }
    return Apply(record, replaced);
  }
  const auto begin = static_cast<Index>(draw(50));
  const Index end = begin + 1 + static_cast<Index>(draw(5));
  Apply(record, ReaderCommitted{reader.client, PartitionId(1 + draw(3)), IndexSet::Of(begin, end)});
}

TEST(IterationRecord, KeepsTheElementsThatAnyReaderHasCommitted) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    IterationRecord record;
    for (uint64_t p = 1; p <= 3; ++p) Apply(record, PartitionOpened{PartitionId(p)});
    for (int step = 0; step < 200; ++step) {
      ChangeReaders(record, random);
      for (uint64_t p = 1; p <= 3; ++p) {
        IndexSet committed;
        for (const ReaderRecord& reader : record.readers)
          committed.Add(Of(reader.committed, PartitionId(p)));
        ASSERT_EQ(CommittedIndices(record, PartitionId(p)), committed) << "step " << step;
        ASSERT_EQ(FirstUncommitted(record, PositionsOf(record), PartitionId(p)),
                  committed.FirstMissing());
      }
      ASSERT_TRUE(IsKept(record));
    }
  }
}

}  // namespace
}  // namespace penstock::protocol
