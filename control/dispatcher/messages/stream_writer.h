// SPDX-License-Identifier: Apache-2.0
// The sending side of a peer's stream, as the core sees it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/worker_messages.h"

namespace penstock::control {

// Messages to one peer. Other peers may be sent the same ones.
template <class Down>
using MessageBatch = std::vector<std::shared_ptr<const Down>>;

// Any thread may call any method. No method blocks. Messages to a stream that is over are dropped.
template <class Down>
class StreamWriter {
 public:
  virtual ~StreamWriter() = default;
  // `sequence`: the number of the journal's last record on which the message depends.
  virtual void Send(Down message, uint64_t sequence) = 0;
  // Sends them one after the other. A writer may join them.
  virtual void SendAll(const MessageBatch<Down>& messages, uint64_t sequence) {
    for (const auto& message : messages) Send(*message, sequence);
  }
  // Ends the stream with `status`, after all messages passed to Send() before.
  virtual void Finish(const absl::Status& status) = 0;
};

using ClientStreamWriter = StreamWriter<ClientDown>;
using WorkerStreamWriter = StreamWriter<WorkerDown>;

}  // namespace penstock::control
