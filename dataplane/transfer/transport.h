// SPDX-License-Identifier: Apache-2.0
// How elements go from a worker to a client. A transport is a folder beside
// this file and one line in registry.cc; the same conformance suite runs on all
// (tests/dataplane/transfer/conformance.h).
//
// A link joins one client session to one worker for one iteration. The client
// dials, authorises itself with the job's token, offers credits and receives;
// the worker sends elements against credits. Elements arrive in the order they
// were sent, each once, unless the link breaks; what was sent and not confirmed
// then is in doubt (docs/exactly_once.md, rule 5) and settled over the next
// link by the parties above, not here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/protocol/index_set.h"
#include "dataplane/memory/pool.h"
#include "penstock/element.h"
#include "penstock/ids.h"
#include "penstock/spec.h"

namespace penstock::transfer {

// What the client says first on a new link.
struct Hello {
  std::string token;         // of the job; a link with another one is refused: PermissionDenied
  ClientId client;
  Incarnation incarnation;
  IterationId iteration;
};

// What a client has of a partition under a placement: its answer to a worker
// whose earlier link to it broke.
struct Holding {
  PartitionId partition;
  Placement placement;
  IndexSet indices;          // taken or landed
};

// Room for one more element of up to `bytes` (0: of any size that max_element_bytes allows).
struct Credits {
  int64_t count = 0;
};

// --- The worker's end --------------------------------------------------------

// One accepted link. Methods: any thread, no wait. Destroying it closes it.
class SendLink {
 public:
  virtual ~SendLink() = default;
  virtual const Hello& hello() const = 0;
  // Sends `element` (its identity is in its head) against one credit. The
  // caller counts credits: without one it is FailedPrecondition. Unavailable
  // on a broken link. The loan is kept until the bytes have left.
  virtual absl::Status Send(Element element) = 0;
  // An error in an element's place, with its identity.
  virtual absl::Status SendError(const Identity& identity, const absl::Status& error) = 0;
  // Sends what waits in a frame for company: call when nothing more comes at once.
  virtual void Flush() = 0;
  // Closes with a reason that the client sees.
  virtual void Close(const absl::Status& reason) = 0;
};

// What happens on a worker's link. Called from the transport's threads, one
// call at a time per link; must not block.
class SendEvents {
 public:
  virtual ~SendEvents() = default;
  virtual void OnCredits(Credits credits) = 0;
  // The client has landed everything sent up to the element number `sent`
  // (counted from 1 on this link).
  virtual void OnLanded(int64_t sent) = 0;
  // What the client has; the first message of a link that replaces a broken one.
  virtual void OnHoldings(std::vector<Holding> holdings) = 0;
  // The link is gone; no further call. OK: closed by the client on purpose.
  virtual void OnClosed(const absl::Status& reason) = 0;
};

// A worker's transport server. Accept decides by token and session and gives
// the events' receiver, or refuses with a status the client sees.
class Listener {
 public:
  using Accept = std::function<absl::StatusOr<std::shared_ptr<SendEvents>>(
      const Hello& hello, std::shared_ptr<SendLink> link)>;
  virtual ~Listener() = default;  // closes all its links
  virtual std::string address() const = 0;
  virtual std::string compatibility() const = 0;  // bytes for the client's check
};

// --- The client's end ----------------------------------------------------------

class ReceiveEvents {
 public:
  virtual ~ReceiveEvents() = default;
  // An element landed, checked against the spec. Returns when it is on its way
  // to the reader; from then on the transport reports it as landed.
  virtual void OnElement(Element element) = 0;
  virtual void OnError(const Identity& identity, const absl::Status& error) = 0;
  virtual void OnClosed(const absl::Status& reason) = 0;
};

class ReceiveLink {
 public:
  virtual ~ReceiveLink() = default;  // closes it; no event after it returns
  virtual void Grant(Credits credits) = 0;
  virtual void SendHoldings(const std::vector<Holding>& holdings) = 0;
};

struct DialOptions {
  Hello hello;
  Spec spec;                                 // what the iteration's elements must admit
  Pool* pool = nullptr;                      // where they land
  std::vector<Holding> holdings;             // for a link that replaces a broken one
  bool replaces_broken = false;
  int64_t max_element_bytes = int64_t{4} << 30;
  absl::Duration timeout = absl::Seconds(10);
};

// --- The transport -------------------------------------------------------------

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;
  // Lower is preferred by "auto".
  virtual int rank() const = 0;
  // NotFound with the reason where it cannot run here.
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(std::string_view host,
                                                           Listener::Accept accept) = 0;
  // Whether this client can reach that server; the reason if not. No traffic.
  virtual absl::Status Check(std::string_view address, std::string_view compatibility) = 0;
  virtual absl::StatusOr<std::unique_ptr<ReceiveLink>> Dial(
      std::string_view address, const DialOptions& options,
      std::shared_ptr<ReceiveEvents> events) = 0;
};

// A transport a worker offers.
struct Offer {
  std::string protocol;
  std::string address;
  std::string compatibility;
};

// The transport of that name; NotFound lists the known ones.
absl::StatusOr<Transport*> FindTransport(std::string_view name);
std::vector<std::string> TransportNames();
// AlreadyExists for a name that is taken.
absl::Status RegisterTransport(std::unique_ptr<Transport> transport);

// Which of a worker's offers a client takes, and why in words: "local: same
// process", "grpc: local is not possible (other process)". A named protocol is
// NotFound "Protocol 'X' is not available for worker 'Y': why" unless one of
// `fallback` is.
struct Choice {
  Transport* transport;
  Offer offer;
  std::string reason;
};
absl::StatusOr<Choice> Negotiate(std::string_view wanted, const std::vector<std::string>& fallback,
                                 const std::vector<Offer>& offers, std::string_view worker);

}  // namespace penstock::transfer
