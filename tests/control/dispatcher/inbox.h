// SPDX-License-Identifier: Apache-2.0
// A stream writer that keeps the messages of a dispatcher in this thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "control/dispatcher/messages/stream_writer.h"

namespace penstock::control {

template <class Writer, class Down>
class Inbox final : public Writer {
 public:
  void Send(Down message, uint64_t) override { messages.push_back(std::move(message)); }
  void SendAll(const MessageBatch<Down>& batch, uint64_t sequence) override {
    batches.push_back(batch.size());
    Writer::SendAll(batch, sequence);
  }
  void Finish(const absl::Status& status) override { finished = status; }
  // Returns the next message of that type and drops messages of other types before it.
  template <class M>
  std::optional<M> Take() {
    while (!messages.empty()) {
      Down message = std::move(messages.front());
      messages.pop_front();
      if (auto* wanted = std::get_if<M>(&message)) return std::move(*wanted);
    }
    return std::nullopt;
  }
  std::deque<Down> messages;
  std::vector<size_t> batches;  // the number of messages in each
  std::optional<absl::Status> finished;
};

}  // namespace penstock::control
