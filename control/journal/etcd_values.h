// SPDX-License-Identifier: Apache-2.0
// Values of any size in etcd. A value that is larger than etcd allows is in chunks. The key of a
// chunk contains its SHA-256, so that damage is noticed. Includes Protobuf.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/journal/etcd_fence.h"
#include "control/proto/journal.pb.h"

namespace penstock::control {

// The keys of a journal (docs/journal.md, "In etcd"). The keys of greater numbers are greater.
struct EtcdKeys {
  std::string prefix;

  std::string Log(uint64_t first) const;  // of the group that begins with this record
  // Returns `first` of a key Log(first). DataLoss if it is none.
  absl::StatusOr<uint64_t> FirstOf(const std::string& log) const;
  std::string LogChunks(uint64_t first) const;  // the prefix of the chunks of that group
  std::string Snapshot() const;
  std::string SnapshotChunks(uint64_t sequence) const;  // the prefix of the chunks of a snapshot
};

// etcd's limit is 1.5 MiB for a transaction.
inline constexpr size_t kMostValueBytes = 1 << 20;

// Writes the bytes as chunks below `chunks` if they are more than kMostValueBytes, and describes
// them in `stored`. The errors of EtcdFence::Put().
absl::Status StoreBytes(EtcdFence& fence, const std::string& chunks, std::string_view bytes,
                        wire::StoredBytes* stored);
// Reads the bytes. DataLoss, with the key, if a chunk is missing or damaged.
absl::StatusOr<std::string> LoadBytes(const EtcdFence& fence, const std::string& chunks,
                                      const wire::StoredBytes& stored);

}  // namespace penstock::control
