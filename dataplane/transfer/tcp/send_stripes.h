// SPDX-License-Identifier: Apache-2.0
// A link's further connections at the worker's end, and the connection whose turn it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "dataplane/transfer/tcp/loop.h"
#include "dataplane/transfer/tcp/message_writer.h"
#include "dataplane/transfer/tcp/send_stripe.h"
#include "dataplane/transfer/tcp/socket.h"

namespace penstock::transfer::tcp {

// Not thread-safe.
class SendStripes {
 public:
  // Starts the connection and adds it. AlreadyExists if there is already a connection with that
  // number.
  absl::Status Add(uint32_t number, const std::shared_ptr<SendStripe>& connection);
  size_t size() const { return stripes_.size(); }
  // Returns true if there are further connections and the element is large enough to be
  // distributed.
  bool Takes(const QueuedMessage& message) const;
  // Distributes elements over all connections in turn. If it is another connection's turn, returns
  // a message that names that connection and takes the element's place; else the element.
  QueuedMessage Route(QueuedMessage element);
  // Closes and removes all connections.
  void Close();

 private:
  struct Stripe {
    uint32_t number = 0;
    std::shared_ptr<SendStripe> connection;
  };

  std::vector<Stripe> stripes_;
  size_t next_ = 0;  // the next element's connection; 0: the link's first
};

}  // namespace penstock::transfer::tcp
