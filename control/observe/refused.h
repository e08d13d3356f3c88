// SPDX-License-Identifier: Apache-2.0
// Counts the connections, calls and messages that the ports of this process refuse, in
// penstock_refused_total{port, reason}. docs/security.md lists the bound of each port.
#pragma once

namespace penstock {

enum class Port {
  kPages,       // status pages
  kDispatcher,  // gRPC of a dispatcher
  kGrpc,        // of a worker, as the following ones
  kTcp,
  kUcx,
  kShm,
};

enum class Refused {
  kTooMany,          // above a bound on a number of connections, streams, calls or names
  kTooLate,          // the peer did not send its hello or request, or did not read, in time
  kTooLong,          // a message, a header or a name is longer than its bound
  kUnauthenticated,  // a token is missing or wrong, or another user's process called
};

// Adds one. Any thread may call it. Takes a lock, so it is not for the path of elements.
void CountRefused(Port port, Refused reason);

}  // namespace penstock
