// SPDX-License-Identifier: Apache-2.0
// Writes a link's messages to its first connection: compresses them if that pays off, adds heads
// and checksums, and hands them to the socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "dataplane/memory/pool.h"
#include "dataplane/transfer/link_codec.h"
#include "dataplane/transfer/tcp/message_writer.h"

namespace penstock::transfer::tcp {

// Used by one thread at a time, except compresses() and OnReceived().
class LinkWriter {
 public:
  // Call this before the first message. `sums`: kSumOfAll or 0.
  void Configure(LinkCompression compression, uint8_t sums);
  uint8_t sums() const { return sums_; }

  void Add(QueuedMessage message) { writer_.Add(std::move(message)); }
  size_t size() const { return writer_.size(); }
  bool empty() const { return writer_.empty(); }
  void Clear() { writer_.Clear(); }
  // Same as in MessageWriter.
  MessageWriter::Wrote Write(int fd);
  int error() const { return writer_.error(); }

  // Any thread.
  bool compresses() const { return codec_.present() != Codec::kNone; }
  // Any thread. The client has received the `count` oldest elements.
  void OnReceived(int64_t count) { codec_.OnReceived(count); }

 private:
  void Finish(QueuedMessage& message);

  LinkCodec codec_{DefaultPool()};
  uint8_t sums_ = 0;
  MessageWriter writer_;
};

}  // namespace penstock::transfer::tcp
