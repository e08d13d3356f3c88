// SPDX-License-Identifier: Apache-2.0
// Converts the protocol's ids and sets to the small numbers of the world
// (tests/control/protocol/world.h), and back.
#pragma once

#include <cstdint>

#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/protocol/sender.h"
#include "tests/control/protocol/world.h"

namespace penstock::protocol {

inline PartitionId Partition(int p) {
  return PartitionId(static_cast<uint64_t>(p) + 1);
}
inline ClientId ClientName(int c) {
  return ClientId(static_cast<uint64_t>(c) + 1);
}
inline WorkerId WorkerName(int w) {
  return WorkerId(static_cast<uint64_t>(w) + 1);
}
inline int At(PartitionId id) {
  return static_cast<int>(id.value()) - 1;
}
inline int At(ClientId id) {
  return static_cast<int>(id.value()) - 1;
}
inline int At(WorkerId id) {
  return static_cast<int>(id.value()) - 1;
}
inline uint8_t Byte(auto number) {
  return static_cast<uint8_t>(number);
}
inline uint8_t Byte(Placement g) {
  return static_cast<uint8_t>(g.value());
}
inline uint8_t Byte(Incarnation i) {
  return static_cast<uint8_t>(i.value());
}

inline uint8_t Mask(const IndexSet& set) {
  unsigned mask = 0;
  for (const IndexSet::Interval& i : set.intervals()) mask |= (1u << i.end) - (1u << i.begin);
  return static_cast<uint8_t>(mask);
}

inline IndexSet Set(uint8_t mask) {
  IndexSet set;
  for (int i = 0; i < 8; ++i)
    if (mask >> i & 1) set.Add(i);
  return set;
}

template <class Masks>
Masks MasksOf(const ReceivedSets& sets) {
  Masks masks = {};
  for (const auto& [partition, set] : sets) masks[partition.value() - 1] = Mask(set);
  return masks;
}

template <class Masks>
ReceivedSets ReceivedSetsOf(const Masks& masks, int partitions) {
  ReceivedSets sets;
  for (int p = 0; p < partitions; ++p) sets.Add(Partition(p), Set(masks[static_cast<size_t>(p)]));
  return sets;
}

// Two bits for each client: the incarnation that reads.
inline uint8_t ReadersByte(const Readers& readers) {
  unsigned byte = 0;
  for (const Reader& reader : readers) byte |= Byte(reader.incarnation) << (2 * At(reader.client));
  return static_cast<uint8_t>(byte);
}

inline Readers ReadersOf(uint8_t byte) {
  Readers readers;
  for (int c = 0; c < kMaxClients; ++c)
    if (int incarnation = byte >> (2 * c) & 3)
      readers.push_back({ClientName(c), Incarnation(static_cast<uint64_t>(incarnation))});
  return readers;
}

}  // namespace penstock::protocol
