// SPDX-License-Identifier: Apache-2.0
// An iteration of which readers read some workers only.
#pragma once

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "control/policy/audience.h"
#include "gtest/gtest.h"

namespace penstock::control {

// An iteration whose workers have one partition each.
class AudienceFixture : public testing::Test {
 protected:
  void Alter(const protocol::IterationChange& change) {
    protocol::Apply(record_, change);
    protocol::CountForPlacing(context_, change);
    if (const auto* raised = std::get_if<protocol::PlacementRaised>(&change))
      context_.NoteRaised(raised->partition.value() - 1);
  }
  void Join(uint64_t client) {
    Alter(protocol::ReaderJoined{ClientId(client), Incarnation(1)});
    context_.ResetReader(record_.readers.size() - 1);
  }
  void Leave(uint64_t client) {
    Alter(protocol::ReaderGone{ClientId(client), protocol::ReaderStatus::kLeft});
  }
  void Open(size_t partitions) {
    while (record_.partitions.size() < partitions) {
      const PartitionId next(record_.partitions.size() + 1);
      Alter(protocol::PartitionOpened{next});
      context_.collecting.Add(protocol::PositionOf(context_.partitions.size()));
      context_.partitions.emplace_back();
    }
  }
  void Assign(uint64_t partition, IndexSet audience) {
    protocol::Apply(record_,
                    protocol::PartitionAssigned{PartitionId(partition), Placement(1),
                                                WorkerId(100 + partition), std::move(audience)});
  }
  // Assigns each partition to a worker of its own, with the audience that is chosen for it.
  void AssignAll(const LinkRule& rule) {
    Open(static_cast<size_t>(rule.workers));
    for (uint64_t n = 1; n <= record_.partitions.size(); ++n)
      Assign(n, ChooseAudience(record_, WorkerId(100 + n), rule, ReadingPositions(record_)));
  }
  MoreReaders Extend(const LinkRule& rule) {
    MoreReaders more = ReadersToAdd(record_, context_, rule);
    for (const auto& [partition, readers] : more.of)
      Alter(protocol::AudienceExtended{partition, readers});
    return more;
  }
  // Returns how many partitions serve each reader.
  std::vector<int64_t> Links() const {
    std::vector<int64_t> links(record_.readers.size());
    for (const protocol::PartitionRecord& partition : record_.partitions)
      for (size_t r = 0; r < links.size(); ++r) links[r] += partition.MayServe(r) ? 1 : 0;
    return links;
  }
  int64_t AllLinks() const {
    int64_t sum = 0;
    for (const int64_t links : Links()) sum += links;
    return sum;
  }

  protocol::IterationRecord record_;
  protocol::IterationContext context_;
};

}  // namespace penstock::control
