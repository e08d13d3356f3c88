// SPDX-License-Identifier: Apache-2.0
#include "control/journal/etcd_values.h"

#include <openssl/sha.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

constexpr size_t kChunkBytes = 512 << 10;

std::string Sha256(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  return {reinterpret_cast<const char*>(digest), sizeof digest};
}

std::string ChunkKey(const std::string& chunks, const std::string& digest) {
  return absl::StrCat(chunks, absl::BytesToHexString(digest));
}

}  // namespace

std::string EtcdKeys::Log(uint64_t first) const {
  return absl::StrFormat("%slog/%020d", prefix, first);
}

absl::StatusOr<uint64_t> EtcdKeys::FirstOf(const std::string& log) const {
  uint64_t first = 0;
  if (absl::SimpleAtoi(log.substr(log.rfind('/') + 1), &first) && Log(first) == log) return first;
  return absl::DataLossError(absl::StrCat("journal in etcd: ", log, " has no number of a record"));
}

std::string EtcdKeys::LogChunks(uint64_t first) const {
  return absl::StrFormat("%slog_chunk/%020d/", prefix, first);
}

std::string EtcdKeys::Snapshot() const {
  return absl::StrCat(prefix, "snapshot");
}

std::string EtcdKeys::SnapshotChunks(uint64_t sequence) const {
  return absl::StrFormat("%ssnapshot_chunk/%020d/", prefix, sequence);
}

absl::Status StoreBytes(EtcdFence& fence, const std::string& chunks, std::string_view bytes,
                        wire::StoredBytes* stored) {
  if (bytes.size() <= kMostValueBytes) {
    stored->set_bytes(bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kChunkBytes))) {
    const std::string chunk(bytes.substr(0, kChunkBytes));
    const std::string digest = Sha256(chunk);
    RETURN_IF_ERROR(fence.Put({.key = ChunkKey(chunks, digest), .value = chunk}).status());
    stored->add_chunks(digest);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> LoadBytes(const EtcdFence& fence, const std::string& chunks,
                                      const wire::StoredBytes& stored) {
  if (stored.chunks().empty()) return stored.bytes();
  std::string bytes;
  for (const std::string& digest : stored.chunks()) {
    const std::string key = ChunkKey(chunks, digest);
    ASSIGN_OR_RETURN(const std::vector<EtcdKey> found, fence.Read({.key = key}));
    if (found.empty()) {
      return absl::DataLossError(absl::StrCat("journal in etcd: ", key, " is missing"));
    }
    if (Sha256(found.front().value) != digest) {
      return absl::DataLossError(absl::StrCat("journal in etcd: ", key, " is damaged"));
    }
    absl::StrAppend(&bytes, found.front().value);
  }
  return bytes;
}

}  // namespace penstock::control
