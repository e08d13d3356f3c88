// SPDX-License-Identifier: Apache-2.0
// What a client tells a worker on a new link: which of the elements that were
// sent on the earlier one it received, as far as the worker may not know of it
// (docs/exactly_once.md, rule 5).
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/transport.h"
#include "penstock/ids.h"

namespace penstock::client {

// Of the links to one worker. What was received is forgotten as soon as the worker
// must know: one that has used a credit knows of all that was received when the
// credit was granted (transfer/transport.h). So no more is kept than the worker
// may have had leave to send at a time, and what came in one event. Not
// thread-safe.
class UnackedReceives {
 public:
  // What the worker may not know of.
  std::vector<transfer::Holding> Unreported() const;
  // A new link, whose Hello has what Unreported() says. That stays until something is
  // received on this link: only then it is certain that the Hello was heard.
  void OnDialled();

  // That many more may be sent. Call it before they are granted, on that link.
  void OnGranted(int64_t count);
  // That many were not used and came back.
  void OnRecalled(int64_t count);

  // An event of the link begins; the transport reports what was received in earlier ones.
  void OnEvent() { reported_ = received_; }
  // An element or error came. `here`: this client has it now, from now or before.
  void OnReceived(const Identity& identity, bool here);

 private:
  // Of one partition, with indices in a row, one behind the other on its link.
  struct Run {
    PartitionId partition;
    Placement placement;
    Index begin = 0;
    Index end = 0;
    int64_t first = 0;  // the number of `begin` among what was received on its link
  };
  struct Granted {
    int64_t before = 0;    // credits granted before these
    int64_t reported = 0;  // received and reported before these
  };

  void ForgetReported();

  transfer::Fifo<Run> runs_;
  transfer::Fifo<Granted> grants_;  // those the worker may not have heard of
  // On the present link:
  int64_t granted_ = 0;
  int64_t used_ = 0;  // credits: for what came, and those that came back
  int64_t received_ = 0;
  int64_t reported_ = 0;
};

}  // namespace penstock::client
