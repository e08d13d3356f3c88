// SPDX-License-Identifier: Apache-2.0
// Stands between a dispatcher and its workers and clients: hands on every call, says what
// goes over a stream twice, and breaks calls where it is told to.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace penstock {

struct RelayOptions {
  // Each message of a stream but its first, which opens it, comes twice in a row.
  bool double_messages = false;
  // How many messages a new call lets through, both ways together, before it breaks. The one
  // behind them is lost, and with it what is on its way. Any thread. Empty: it never breaks.
  // Of a call that is no stream the first message is the request, the second the answer.
  std::function<int64_t(bool stream)> breaks_after;
};

class Relay {
 public:
  // At a free port of loopback, before the dispatcher at "[grpc://]host:port".
  static absl::StatusOr<std::unique_ptr<Relay>> Start(const std::string& service,
                                                      RelayOptions options);
  virtual ~Relay() = default;  // breaks what is open

  virtual std::string service() const = 0;  // what workers and clients are to be given
  virtual int64_t doubled() const = 0;      // messages
  virtual int64_t broken() const = 0;       // calls
};

}  // namespace penstock
