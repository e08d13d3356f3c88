// SPDX-License-Identifier: Apache-2.0
// The interface through which the elements of an iteration leave a worker. IterationSender gives
// each element to one client; SharedWindow gives each element to every trainer.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/positions.h"
#include "control/protocol/rounds.h"
#include "control/protocol/worker_messages.h"
#include "dataplane/transfer/transport.h"
#include "dataplane/worker/permits.h"

namespace penstock::worker {

// Describes what a placed partition sends, and to which readers.
struct PartitionSinkOptions {
  control::PlacedPartition of;
  IndexSet skip;    // must not be sent
  Index first = 0;  // the index at which production begins
  std::vector<control::Reader> readers;
  // In a coordinated read, each index belongs to one consumer, and rows are sent whole
  // (control/protocol/rounds.h).
  int64_t consumers = 0;   // 0: not a coordinated read
  int64_t group_size = 1;  // number of consumers that share an element
  bool ordered = false;    // readers limit how far the partition may send; an element is a row
  std::optional<protocol::Positions> positions;  // ordered: the consumer of each index
  int64_t rows = 0;                              // rows that may be sent
  std::optional<protocol::Remainder> remainder;
  Permit* permit = nullptr;  // given up during waits; used only in Send(), End() and Linger()
};

// Takes the elements of a placed partition. Only the thread of the partition's runner may call
// Send(), Pass(), End() and Linger(); any thread may call the other methods.
class PartitionSink {
 public:
  virtual ~PartitionSink() = default;

  // Sends an element, or an error in its place, with its identity. Waits for a reader to ask for
  // the element, and gives up the permit during this wait. Returns Cancelled after Cancel().
  virtual absl::Status Send(transfer::Sent sent) = 0;
  // Reports that `index` was produced but must not be sent. This also holds for the indices between
  // the last index sent and `index`. Returns Cancelled after Cancel().
  virtual absl::Status Pass(Index index) = 0;
  // Call this when all elements have been produced. Waits until no element is in doubt; the
  // partition may then be reported as Ended. Returns Cancelled after Cancel(), InvalidArgument if
  // the partition must not end.
  virtual absl::Status End(Index elements) = 0;
  // Returns the number of elements, including the pads of a coordinated read. REQUIRES: End() has
  // returned.
  virtual Index elements() const = 0;
  // Until Cancel(), continues to send again the elements that were not received.
  virtual void Linger() = 0;
  // Returns the best pool for making the element with that index; nullptr: any pool. Any thread.
  virtual std::shared_ptr<Pool> SlotsFor(Index index) = 0;
  // Announces that `index` will probably be made next.
  virtual void Produces(Index index) = 0;
  // Returns the index of the element that is made `elements` later.
  virtual Index ProducesAfter(int64_t elements) const = 0;
  // From now on, also sends to the session of `reader`.
  virtual void AddReader(const control::Reader& reader) = 0;
  // From now on, sends nothing to `client`, and closes its links. Only for a cross-trainer cache.
  virtual void RemoveReader(ClientId client) = 0;
  // Allows the partition to send the first `rows` rows, which are elements in an ordered read. In a
  // coordinated read, `remainder` fills the last row.
  virtual void Allow(int64_t rows, const std::optional<protocol::Remainder>& remainder) = 0;
  // Makes the sink send nothing more, and ends all waits. Takes no stop token, because Close() also
  // cancels the sinks of partitions that nobody stopped.
  virtual void Cancel() = 0;
};

// The sinks of all of an iteration's partitions on this worker. Thread-safe; does not wait.
class IterationSink {
 public:
  virtual ~IterationSink() = default;

  // Accepts a link that a client opened. PermissionDenied for a wrong token; Unavailable once
  // retired. A session's second link replaces its first.
  virtual absl::StatusOr<std::shared_ptr<transfer::SendEvents>> Accept(
      const transfer::Hello& hello, std::shared_ptr<transfer::SendLink> link) = 0;
  // Returns a sink, which the caller must pass to Close(). Until then, the sink and this object
  // keep each other alive.
  virtual std::shared_ptr<PartitionSink> Open(const PartitionSinkOptions& options) = 0;
  // Cancels and forgets the sink.
  virtual void Close(PartitionSink& sink) = 0;
  // Sends the elements that links hold back in order to wait for more.
  virtual void Flush() = 0;
  // Closes all links, and accepts no further links. The clients see `reason`.
  virtual void CloseLinks(const absl::Status& reason) = 0;
  // Stops accepting links if this object has neither partitions nor links. Returns true if this
  // object no longer accepts links, and may be forgotten.
  virtual bool RetireIfIdle() = 0;
};

}  // namespace penstock::worker
