// SPDX-License-Identifier: Apache-2.0
// Closes connections of a gRPC server whose peers send much, or take long, before they are
// authenticated. gRPC 1.51 bounds little of what such a peer can make it hold: header blocks that
// never end cost a byte for each byte that is sent, and streams that are opened without a request
// up to 100. Its ResourceQuota counts neither.
//
// The connections of all strangers together are limited too, in their number and in the bytes that
// they have sent. An honest client proves itself within a few round trips and has sent some KiB by
// then, so these limits do not concern honest newcomers:
// - Above a number, the oldest connection of the source that has most is closed. A source with few
//   connections loses none to a source with many. The pace (control/observe/connection_pace.h) lets
//   in 32 connections of a source, or 128 if its clients prove themselves, and then 16 per second,
//   so the oldest of 256 has had 8 s.
// - Above the number of bytes, the connections that have sent most are closed.
// A crowd of honest clients that share an address stays below the limits: a client that has proved
// itself no longer counts, and the pace lets the others wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/env/descriptor.h"
#include "control/observe/connection_pace.h"
#include "control/observe/refused.h"
#include "control/rpc/accept_loop.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"

namespace penstock::control {

struct ConnectionLimits {
  // The first call with its token, a TLS handshake with certificates, and the 64 KiB that a peer
  // may send without being asked, twice.
  uint64_t bytes = 192 << 10;
  absl::Duration time = absl::Seconds(10);
  // Connections of one IPv4 address, or of one IPv6 network of 64 bits. At least 1, as `in_all`.
  size_t of_source = 256;
  size_t in_all = 2048;  // enough for the hosts of a cluster that all connect at once
  // Of all connections together. With 100 bytes for each, gRPC holds 3.1 GiB.
  uint64_t bytes_in_all = 32 << 20;
};

// Any thread may call any method.
class ConnectionWatch {
 public:
  // `counted_as`: the label of refusals (too_long, too_late, too_many). ResourceExhausted if the
  // process cannot get a thread.
  static absl::StatusOr<std::unique_ptr<ConnectionWatch>> Start(Port counted_as,
                                                                ConnectionLimits limits);
  ~ConnectionWatch();  // no connection may be taken meanwhile
  ConnectionWatch(const ConnectionWatch&) = delete;
  ConnectionWatch& operator=(const ConnectionWatch&) = delete;

  // Returns a function that watches a connection, with a second descriptor of its socket, and
  // passes it to `take`. If the process has too few descriptors for that, it closes the connection.
  // `pace`, which is not null, learns what clients have sent. Call it once. This object must
  // outlive the function's last call.
  AcceptLoop::Take Watching(std::shared_ptr<ConnectionPace> pace, AcceptLoop::Take take);
  // The peer of that connection is authenticated, so its limits end. `peer` is
  // ServerContext::peer().
  void Authenticated(const std::string& peer);

 private:
  struct Connection {
    ClientAddress client;
    Descriptor socket;  // a second one beside gRPC's
    absl::Time since;
    uint64_t bytes = 0;  // that had arrived at the last look
  };

  ConnectionWatch(Port counted_as, ConnectionLimits limits)
      : counted_as_(counted_as), limits_(limits) {}
  void Run();
  void Look(absl::Time now) REQUIRES(mu_);
  void MakeRoomFor(const ClientAddress& client) REQUIRES(mu_);
  void Close(const Connection& one, Refused reason) const;

  const Port counted_as_;
  const ConnectionLimits limits_;
  Mutex mu_;
  Condition changed_;
  std::shared_ptr<ConnectionPace> pace_ GUARDED_BY(mu_);
  bool stopping_ GUARDED_BY(mu_) = false;
  std::vector<Connection> unauthenticated_ GUARDED_BY(mu_);  // oldest first
  Thread thread_;
};

}  // namespace penstock::control
