// SPDX-License-Identifier: Apache-2.0
// Types that several messages contain, such as a partition and a set of its elements.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "control/protocol/index_set.h"
#include "control/protocol/messages.h"
#include "penstock/ids.h"

namespace penstock::control {

// A range of versions of the control protocol: all versions in [min, max]. The versions of this
// release are the default. A new message or field that older peers may ignore needs no new version.
struct VersionRange {
  uint32_t min = 2;
  uint32_t max = 5;
  friend bool operator==(const VersionRange&, const VersionRange&) = default;
};

// From this version on, peers read several messages of the dispatcher in one (`more` in
// control.proto).
inline constexpr uint32_t kFirstWithJoinedMessages = 5;

// A partition of any iteration.
struct PartitionKey {
  IterationId iteration;
  PartitionId partition;
  friend auto operator<=>(const PartitionKey&, const PartitionKey&) = default;
};

// A partition under one assignment.
struct PlacedPartition {
  IterationId iteration;
  PartitionId partition;
  Placement placement;
  uint64_t journal = 0;  // of the assignment (Life::journal); its numbers are valid only there
  friend auto operator<=>(const PlacedPartition&, const PlacedPartition&) = default;
};

// A transport that a worker offers; the dispatcher passes it on unread.
struct TransferOffer {
  std::string protocol;
  std::string address;
  std::string compatibility;
  int32_t preference = 0;  // 1, 2, …: the place of the protocol in the worker's config
  friend bool operator==(const TransferOffer&, const TransferOffer&) = default;
};

// Splits of one provider and repetition that belong to a partition. numbers[i] is the partition's
// split number `first_ordinal + i`.
struct SplitRun {
  int32_t provider = 0;
  int64_t repetition = 0;
  int64_t first_ordinal = 0;
  std::vector<int64_t> numbers;
  bool no_more = false;  // no split follows the last one in `numbers`
  friend bool operator==(const SplitRun&, const SplitRun&) = default;
};

// Versions of the formats in which operations save their positions. A bookmark has the versions of
// the operations in it, and a worker says which versions it reads. Operations in their first
// version are left out of both lists, so both are empty for releases that know no others.
//
// The version that an operation in a bookmark has.
struct PositionVersion {
  std::string operation;  // a node's, such as "Shuffle"; "position" for the bytes around the nodes
  uint32_t version = 1;
  friend bool operator==(const PositionVersion&, const PositionVersion&) = default;
};
// The versions of an operation that a worker reads: all in [lowest, highest].
struct PositionVersions {
  std::string operation;
  uint32_t lowest = 1;
  uint32_t highest = 1;
  friend bool operator==(const PositionVersions&, const PositionVersions&) = default;
};
// The maximum length of either list, and of an operation's name in bytes. No release has as many
// operations.
inline constexpr size_t kMostPositionVersions = 1024;
inline constexpr size_t kMostOperationBytes = 256;

using protocol::Reader;  // its `consumer` is not part of its identity

// A set of indices of one partition of the session's iteration.
struct PartitionIndices {
  PartitionId partition;
  IndexSet indices;
  friend bool operator==(const PartitionIndices&, const PartitionIndices&) = default;
};

using PartitionReport = protocol::Report;

}  // namespace penstock::control
