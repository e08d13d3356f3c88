// SPDX-License-Identifier: Apache-2.0
// Writes a client's messages to its link's first connection: hello, updates, goodbye. While the
// socket is full, updates are combined into one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "dataplane/transfer/message.h"

namespace penstock::transfer::tcp {

// Not thread-safe.
class RequestWriter {
 public:
  explicit RequestWriter(std::string hello) : out_(std::move(hello)) {}

  // The effects of these calls wait for the next Write().
  void Grant(int64_t count);
  void Recall();
  void Report(int64_t received) { waiting_.received += received; }
  bool has_report() const { return waiting_.received > 0; }
  // The client closes the link: the goodbye is the last message.
  void Close() { closed_ = true; }
  bool closed() const { return closed_; }

  // The socket is writable. Returns false if this was already known.
  bool SetWritable() { return !std::exchange(writable_, true); }
  // Writes until the socket is full or everything is written.
  void Write(int fd);
  // Writes, and shuts the connection down for writing once everything is written.
  void WriteAndShutDown(int fd);

 private:
  void AddWaiting();

  bool writable_ = false;
  bool closed_ = false;
  bool goodbye_sent_ = false;
  bool shut_down_ = false;
  Update waiting_;   // the next update to the worker
  std::string out_;  // bytes being written
  size_t out_at_ = 0;
};

}  // namespace penstock::transfer::tcp
