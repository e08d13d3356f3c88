// SPDX-License-Identifier: Apache-2.0
// Counts that clients and workers report with their heartbeats.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "penstock/ids.h"
#include "penstock/iterator.h"

namespace penstock::control {

// Numbers of elements of at least 64 KiB that came over shared memory, by the way in which they got
// into the client's memory (dataplane/transfer/filled.h).
struct FilledElements {
  int64_t in_place = 0;  // made in the client's memory; all others were copied
  int64_t no_slot = 0;
  int64_t for_another = 0;
  int64_t elsewhere = 0;
  friend bool operator==(const FilledElements&, const FilledElements&) = default;
};

// The elements from one worker since the session began, over all connections to it.
struct LinkCounts {
  WorkerId worker;
  std::string protocol;  // of the latest connection; empty before the first
  std::string reason;    // why that protocol: "tcp: PENSTOCK_DATA_TRANSFER_PROTOCOL"
  bool open = false;
  int64_t elements = 0;
  int64_t bytes = 0;    // of their blocks
  int64_t credits = 0;  // that the worker has now
  // The number of waits of Next() that an element from this worker ended, the time of these waits
  // until the element was received, and the time after that.
  int64_t waits = 0;
  absl::Duration waited_until_received;
  absl::Duration waited_after_received;
  bool down = false;  // the link is wanted, but broke or could not be opened
  FilledElements filled;
  friend bool operator==(const LinkCounts&, const LinkCounts&) = default;
};

// How a session's user has spent its time since the first element. Measured at calls of Next(), so
// that only whole steps count.
struct StepCounts {
  int64_t elements = 0;   // returned by Next()
  absl::Duration own;     // between a return of Next() and the next call
  absl::Duration waited;  // inside Next(), for elements that had not arrived
  friend bool operator==(const StepCounts&, const StepCounts&) = default;
};

// A worker's work for an iteration since it first had partitions of it. Counts whole elements.
struct IterationWork {
  IterationId iteration;
  int64_t elements = 0;    // produced here, no matter whether they were needed
  absl::Duration busy;     // of all partitions, while they had a permit; excludes waits for
                           // trainers
  int32_t partitions = 0;  // that have not ended
  friend bool operator==(const IterationWork&, const IterationWork&) = default;
};

// The work of a dataset's nodes on one worker, over all partitions there, since the worker first
// had the dataset.
struct DatasetWork {
  std::string dataset_id;
  IteratorStats stats;
  friend bool operator==(const DatasetWork&, const DatasetWork&) = default;
};

}  // namespace penstock::control
