// SPDX-License-Identifier: Apache-2.0
// The ways in which the elements of an iteration leave a worker: iteration_sender.h gives each
// element to one client, and shared_window.h gives each element to every trainer.
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
  Index first = 0;  // where production begins
  std::vector<control::Reader> readers;
  // In a coordinated read each index belongs to one consumer, and rows are sent whole
  // (control/protocol/rounds.h).
  int64_t consumers = 0;   // 0: not a coordinated read
  int64_t group_size = 1;  // consumers that get the same elements
  bool ordered = false;    // readers limit how far it may send, and an element is a row
  std::optional<protocol::Positions> positions;  // ordered: the consumer of each index
  int64_t rows = 0;                              // rows that may be sent
  std::optional<protocol::Remainder> remainder;
  Permit* permit = nullptr;  // given up in waits; used only inside Send(), End() and Linger()
};

// Takes the elements of a placed partition. Send(), Pass(), End() and Linger() are for its runner's
// thread, the other methods for any thread.
class PartitionSink {
 public:
  virtual ~PartitionSink() = default;

  // Sends an element, or an error in its place, with its identity. Gives up the permit while it
  // waits for a reader to ask for the element. Returns Cancelled after Cancel().
  virtual absl::Status Send(transfer::Sent sent) = 0;
  // Reports that `index` was produced but must not be sent, and neither must the indices between it
  // and the last sent one. Returns Cancelled after Cancel().
  virtual absl::Status Pass(Index index) = 0;
  // Call it when everything has been produced. Waits until nothing is in doubt; the partition may
  // then be reported as Ended. Returns Cancelled after Cancel(), InvalidArgument if the partition
  // must not end.
  virtual absl::Status End(Index elements) = 0;
  // Returns the number of elements, including the pads of a coordinated read. REQUIRES: End() has
  // returned.
  virtual Index elements() const = 0;
  // Continues to resend elements that were not received, until cancelled.
  virtual void Linger() = 0;
  // Returns the best pool for making the element of that index; nullptr: any pool. Any thread.
  virtual std::shared_ptr<Pool> SlotsFor(Index index) = 0;
  // Announces that `index` will probably be made next.
  virtual void Produces(Index index) = 0;
  // Returns the index of the element that is made `elements` later.
  virtual Index ProducesAfter(int64_t elements) const = 0;
  // Also sends to this session from now on.
  virtual void AddReader(const control::Reader& reader) = 0;
  // In a coordinated read: `rows` rows may be sent, and `remainder` fills the last. In an ordered
  // read: `rows` elements may be sent.
  virtual void Allow(int64_t rows, const std::optional<protocol::Remainder>& remainder) = 0;
  // Sends nothing more and ends all waits. No stop token: Close() does the same to a partition that
  // nobody stopped.
  virtual void Cancel() = 0;
};

// The sinks of all of an iteration's partitions on this worker. Thread-safe; does not wait.
class IterationSink {
 public:
  virtual ~IterationSink() = default;

  // Accepts a link that a client opened. PermissionDenied for a wrong token; Unavailable once
  // retired. A second link of the same session replaces the first.
  virtual absl::StatusOr<std::shared_ptr<transfer::SendEvents>> Accept(
      const transfer::Hello& hello, std::shared_ptr<transfer::SendLink> link) = 0;
  // The caller must close the result, because until then the result and this object keep each other
  // alive.
  virtual std::shared_ptr<PartitionSink> Open(const PartitionSinkOptions& options) = 0;
  // Cancels the sink and forgets it.
  virtual void Close(PartitionSink& sink) = 0;
  // Sends the elements that links hold back in order to wait for more.
  virtual void Flush() = 0;
  // Closes all links and accepts no more of them; the clients see `reason`.
  virtual void CloseLinks(const absl::Status& reason) = 0;
  // Stops accepting links if it has neither partitions nor links. Returns true if it has stopped
  // and may be forgotten.
  virtual bool RetireIfIdle() = 0;
};

}  // namespace penstock::worker
