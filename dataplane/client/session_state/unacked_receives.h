// SPDX-License-Identifier: Apache-2.0
// The elements that a client reports to a worker on a new link, because the client received them on
// an earlier link and the worker may not know this (docs/exactly_once.md, rule 5).
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/transport.h"
#include "penstock/ids.h"

namespace penstock::client {

// Tracks the elements received on the links to one worker. An element is forgotten as soon as the
// worker certainly knows that it was received. A worker that has used a credit knows of all
// elements that had been received when the credit was granted (transfer/transport.h). So the number
// of elements kept is at most the number of credits that the worker may have had at a time, plus
// the elements of one event. Not thread-safe.
class UnackedReceives {
 public:
  // Returns the elements that the worker may not know of.
  std::vector<transfer::Holding> Unreported() const;
  // Call this when a new link begins whose Hello has the result of Unreported(). The elements are
  // kept until an element is received on this link, because only then has the worker certainly read
  // the Hello.
  void OnDialled();

  // Call this before `count` credits are granted on the new link.
  void OnGranted(int64_t count);
  // Records that the worker returned `count` credits unused.
  void OnRecalled(int64_t count);

  // Call this when an event of the link begins. The transport then reports the receives of earlier
  // events to the worker.
  void OnEvent() { reported_ = received_; }
  // Records that an element or error was received. `here`: this client has the element, from this
  // event or an earlier one.
  void OnReceived(const Identity& identity, bool here);

 private:
  // Consecutive indices of one partition that were received one after another on one link.
  struct Run {
    PartitionId partition;
    Placement placement;
    Index begin = 0;
    Index end = 0;
    int64_t first = 0;  // number of elements received on the link before `begin`
  };
  struct Granted {
    int64_t before = 0;    // credits granted before this grant
    int64_t reported = 0;  // elements received and reported before this grant
  };

  void ForgetReported();

  transfer::Fifo<Run> runs_;
  transfer::Fifo<Granted> grants_;  // grants that the worker may not have received
  // On the present link:
  int64_t granted_ = 0;
  int64_t used_ = 0;  // credits that were used or returned
  int64_t received_ = 0;
  int64_t reported_ = 0;
};

}  // namespace penstock::client
