// SPDX-License-Identifier: Apache-2.0
// The elements of an earlier link that a client reports to the worker on a new one: those it
// received and the worker may not know of (docs/exactly_once.md, rule 5).
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/transport.h"
#include "penstock/ids.h"

namespace penstock::client {

// Tracks the elements received on the links to one worker. An element is forgotten as soon as the
// worker must know of it: a worker that has used a credit knows of all elements that were received
// when the credit was granted (transfer/transport.h). So it keeps no more than the credits that the
// worker may have had at a time, and the elements of one event. Not thread-safe.
class UnackedReceives {
 public:
  // Returns the elements that the worker may not know of.
  std::vector<transfer::Holding> Unreported() const;
  // A new link begins, whose Hello has what Unreported() returns. That is kept until something is
  // received on this link: only then the worker has certainly read the Hello.
  void OnDialled();

  // Call it before `count` credits are granted on that link.
  void OnGranted(int64_t count);
  // `count` credits came back unused.
  void OnRecalled(int64_t count);

  // An event of the link begins. The transport reports to the worker what earlier events received.
  void OnEvent() { reported_ = received_; }
  // An element or error came. `here`: this client has it, from this event or an earlier one.
  void OnReceived(const Identity& identity, bool here);

 private:
  // Consecutive indices of one partition that came one after another on their link.
  struct Run {
    PartitionId partition;
    Placement placement;
    Index begin = 0;
    Index end = 0;
    int64_t first = 0;  // the number of `begin` among the elements received on its link
  };
  struct Granted {
    int64_t before = 0;    // credits granted before these
    int64_t reported = 0;  // elements received and reported before these
  };

  void ForgetReported();

  transfer::Fifo<Run> runs_;
  transfer::Fifo<Granted> grants_;  // those that the worker may not have received
  // On the present link:
  int64_t granted_ = 0;
  int64_t used_ = 0;  // credits that were used or came back
  int64_t received_ = 0;
  int64_t reported_ = 0;
};

}  // namespace penstock::client
