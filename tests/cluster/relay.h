// SPDX-License-Identifier: Apache-2.0
// A relay between a dispatcher and its workers and clients. It hands on every call, repeats
// messages of streams, replaces messages, and breaks calls where a test wants it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock {

// A message of a call through the relay.
struct RelayedMessage {
  std::string method;  // of gRPC
  bool is_stream = false;
  bool to_dispatcher = false;
  bool is_first = false;  // in its direction
  std::string bytes;
};

struct RelayOptions {
  // Sends each message of a stream twice in a row, except the first, which opens it.
  bool double_messages = false;
  // Returns how many messages a new call lets through, both ways together, before it breaks. The
  // next message is lost, and so are those on their way. Any thread. Empty: never breaks. If the
  // call is no stream, its first message is the request and the second the answer.
  std::function<int64_t(bool stream)> breaks_after;
  // Returns the messages that are sent instead of this one, at least one; one if the call is no
  // stream. Any thread. Empty: messages are sent as they are.
  std::function<std::vector<std::string>(const RelayedMessage& message)> replace;
};

class Relay {
 public:
  // Listens at a free port of loopback, in front of the dispatcher at "[grpc://]host:port".
  static absl::StatusOr<std::unique_ptr<Relay>> Start(const std::string& service,
                                                      RelayOptions options);
  virtual ~Relay() = default;  // breaks open calls

  virtual std::string service() const = 0;  // the address for workers and clients
  virtual int64_t doubled() const = 0;      // messages
  virtual int64_t broken() const = 0;       // calls
};

}  // namespace penstock
