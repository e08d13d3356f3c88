// SPDX-License-Identifier: Apache-2.0
// How the elements of an iteration leave a worker: iteration_sender.h gives each to one
// client, shared_window.h shows them to every trainer.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/protocol/positions.h"
#include "control/protocol/rounds.h"
#include "control/protocol/session_messages.h"
#include "dataplane/transfer/transport.h"
#include "dataplane/worker/permits.h"

namespace penstock::worker {

// What a placed partition sends, and to whom.
struct PartitionSinkOptions {
  control::PlacedPartition of;
  IndexSet skip;    // not to be sent
  Index first = 0;  // where production begins
  std::vector<control::Reader> readers;
  // Of a coordinated read: an index is its consumer's, and rows go out whole
  // (control/protocol/rounds.h).
  int64_t consumers = 0;   // 0: it is none
  int64_t group_size = 1;  // consumers that get the same elements
  bool ordered = false;    // readers say how far it may go, and an element is a row
  std::optional<protocol::Positions> positions;  // ordered for several: an index is its consumer's
  int64_t rows = 0;                              // that may be sent
  std::optional<protocol::Remainder> remainder;
  Permit* permit = nullptr;  // given up in waits; used only inside Send(), End() and Linger()
};

// Takes the elements of a placed partition. Send(), Pass(), End() and Linger() are for its
// runner's thread, the rest for any.
class PartitionSink {
 public:
  virtual ~PartitionSink() = default;

  // Hands on an element, or an error that stands in its place, with its identity.
  // Waits until somebody wants it, with the permit given up. Cancelled.
  virtual absl::Status Send(transfer::Sent sent) = 0;
  // `index` was produced and is not to be sent, nor is any before it since the last
  // sent. Cancelled.
  virtual absl::Status Pass(Index index) = 0;
  // Everything was produced. Waits until nothing is in doubt; Ended may then be
  // said. Cancelled; InvalidArgument where the partition must not end.
  virtual absl::Status End(Index elements) = 0;
  // How many there are, with the pads of a coordinated read, once End() has returned.
  virtual Index elements() const = 0;
  // Goes on sending again what is not received, until cancelled.
  virtual void Linger() = 0;
  // Where the element of that index is best made; nullptr: anywhere. Any thread.
  virtual std::shared_ptr<Pool> SlotsFor(Index index) = 0;
  // `index` is made next, as far as that is known.
  virtual void Produces(Index index) = 0;
  // The index of the element that is made `elements` later.
  virtual Index ProducesAfter(int64_t elements) const = 0;
  // Sends to this session too, from now on.
  virtual void AddReader(const control::Reader& reader) = 0;
  // Of a coordinated read: `rows` may be sent, and `remainder` fills the last. Of an ordered one:
  // so many elements.
  virtual void Allow(int64_t rows, const std::optional<protocol::Remainder>& remainder) = 0;
  // Sends nothing more; ends all waits.
  virtual void Cancel() = 0;
};

// The sinks of all partitions that an iteration has here. Thread-safe; does not wait.
class IterationSink {
 public:
  virtual ~IterationSink() = default;

  // Takes a link that a client opened. PermissionDenied for a wrong token;
  // Unavailable once retired. A second link of the same session replaces the first.
  virtual absl::StatusOr<std::shared_ptr<transfer::SendEvents>> Accept(
      const transfer::Hello& hello, std::shared_ptr<transfer::SendLink> link) = 0;
  // The caller must close it: until then it and this object keep each other alive.
  virtual std::shared_ptr<PartitionSink> Open(const PartitionSinkOptions& options) = 0;
  // Cancels it and forgets it.
  virtual void Close(PartitionSink& sink) = 0;
  // Sends what waits in the links for more elements.
  virtual void Flush() = 0;
  // Closes every link and takes no more; the clients see `reason`.
  virtual void CloseLinks(const absl::Status& reason) = 0;
  // Takes no more links if it has neither partitions nor links. Whether it is
  // retired, and so may be forgotten.
  virtual bool RetireIfIdle() = 0;
};

}  // namespace penstock::worker
