// SPDX-License-Identifier: Apache-2.0
// Closes connections of a gRPC server whose peers send much, or take long, before they are
// authenticated. gRPC 1.51 bounds little of what such a peer can make it hold: header blocks that
// never end cost a byte for each byte that is sent, and streams that are opened without a request
// about 60. Its ResourceQuota counts neither.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
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
};

// Any thread may call any method.
class ConnectionWatch {
 public:
  // `counted_as`: the label of refusals (too_long, too_late). ResourceExhausted if the process
  // cannot get a thread.
  static absl::StatusOr<std::unique_ptr<ConnectionWatch>> Start(Port counted_as,
                                                                ConnectionLimits limits);
  ~ConnectionWatch();  // no connection may be taken meanwhile
  ConnectionWatch(const ConnectionWatch&) = delete;
  ConnectionWatch& operator=(const ConnectionWatch&) = delete;

  // Returns a function that watches a connection and passes it to `take`. `pace`, which is not
  // null, learns which clients sent too much. Call it once. This object must outlive the function's
  // last call.
  AcceptLoop::Take Watching(std::shared_ptr<ConnectionPace> pace, AcceptLoop::Take take);
  // The peer of that connection is authenticated, so its limits end. `peer` is
  // ServerContext::peer().
  void Authenticated(const std::string& peer);

 private:
  struct Connection {
    int fd;  // gRPC's, which may have closed it
    uint64_t
        cookie;  // the kernel's number of the socket, which no other socket has; 0 if it has none
    absl::Time since;
  };

  ConnectionWatch(Port counted_as, ConnectionLimits limits)
      : counted_as_(counted_as), limits_(limits) {}
  void Run();
  bool IsOver(const ClientAddress& client, const Connection& connection, absl::Time now)
      REQUIRES(mu_);

  const Port counted_as_;
  const ConnectionLimits limits_;
  Mutex mu_;
  Condition changed_;
  std::shared_ptr<ConnectionPace> pace_ GUARDED_BY(mu_);
  bool stopping_ GUARDED_BY(mu_) = false;
  std::map<ClientAddress, Connection> unauthenticated_ GUARDED_BY(mu_);
  Thread thread_;
};

}  // namespace penstock::control
