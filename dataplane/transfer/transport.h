// SPDX-License-Identifier: Apache-2.0
// How elements are sent from a worker to a client. A transport is a folder next to this file and
// one line in builtin_transports.cc. One conformance suite runs on all transports
// (tests/dataplane/transfer/conformance.h).
//
// A link joins one client session to one worker for one iteration. The client dials, authorises
// itself with the job's token, grants credits and receives; the worker sends elements against
// credits. Elements arrive in the order in which they were sent, each once, unless the link breaks.
// Elements that were sent but not confirmed before the break are in doubt (docs/exactly_once.md,
// rule 5). The layers above settle them when the client dials again: its Hello lists the elements
// that it has.
//
// Threads: any thread may call the methods of a link, which do not wait. Events of a link run one
// at a time, on one of the transport's threads, on a thread that waits (polling.h), or inside a
// call of a method of either end (`local`). Therefore, while holding a lock that an event takes, do
// not call a method of a link, and do not wait. Events must not block; they may call any method,
// and may destroy the link to which they belong.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "control/protocol/index_set.h"
#include "dataplane/memory/pool.h"
#include "dataplane/transfer/filled.h"
#include "penstock/distribute.h"
#include "penstock/element.h"
#include "penstock/ids.h"
#include "penstock/spec.h"
#include "penstock/tls.h"

#pragma GCC visibility push(default)
namespace penstock::transfer {

// The elements of a partition that a client has, received under one placement.
struct Holding {
  PartitionId partition;
  Placement placement;
  IndexSet indices;
};

// The client's first message on a new link.
struct Hello {
  std::string token;  // of the job; other tokens: PermissionDenied
  ClientId client;
  Incarnation incarnation;
  IterationId iteration;
  // Elements that the client has received from this worker, perhaps without the worker's knowledge.
  // This list is made after the client's earlier link to this worker, if any, was destroyed, so
  // that nothing more can arrive on that link meanwhile.
  std::vector<Holding> holdings;
  // How the worker compresses the data that it sends, if the protocol uses a network.
  LinkCompression compression = LinkCompression::kNone;
};

// The right to send `count` more elements.
struct Credits {
  int64_t count = 0;
};

// --- The worker's end --------------------------------------------------------

// One element, or an error in an element's place.
struct Sent {
  Sent() = default;
  // Takes the identity from the element's head.
  Sent(Element its) : identity(its.identity()), element(std::move(its)) {}
  Sent(const Identity& identity, Element element)
      : identity(identity), element(std::move(element)) {}
  Sent(const Identity& identity, absl::Status error)
      : identity(identity), error(std::move(error)) {}

  // May differ from the identity in the element's head: the consumers of a group share an element,
  // whose head has the first consumer's index.
  Identity identity;
  Element element;     // empty for an error
  absl::Status error;  // OK for an element
};

// One element or error that was sent and that the client has received.
struct Acknowledged {
  Identity identity;
  int64_t bytes = 0;  // of the element's block; 0 for an error
};

// One accepted link. Destroying it closes it (Cancelled).
class SendLink {
 public:
  virtual ~SendLink() = default;
  virtual const Hello& hello() const = 0;
  // Returns the unused credits. Only Send() and a client's recall reduce them.
  virtual int64_t credits() const = 0;
  // Sends `sent` against one credit. FailedPrecondition if there is no credit, Unavailable if the
  // link is closed, InvalidArgument if the element is larger than the protocol can carry; in these
  // cases the caller keeps `sent`. Otherwise the link keeps the element, or a copy, until the
  // client has received it. An element below 256 KiB may wait up to 2 ms for others to share its
  // message.
  virtual absl::Status Send(Sent&& sent) = 0;
  // Returns the best pool for making blocks for this link (Pool::LendBlock). The pool lends the
  // client's memory, if some is free, and Send() sends a block in that memory without a copy. Such
  // a block may still be sent on any link. nullptr: any memory is equally good.
  virtual std::shared_ptr<Pool> pool() { return nullptr; }
  // Sends the frame that waits for more elements. Call this when no more elements follow
  // immediately.
  virtual void Flush() = 0;
  // Closes the link; the client gets `reason`. Elements sent earlier still arrive unless the link
  // breaks. OnClosed follows.
  virtual void Close(const absl::Status& reason) = 0;
};

// The events of a worker's link.
class SendEvents {
 public:
  virtual ~SendEvents() = default;
  // `granted` more elements may be sent.
  virtual void OnCredits(Credits granted) = 0;
  // The client has received these elements, which were the oldest that it had not yet received.
  virtual void OnReceived(absl::Span<const Acknowledged> received) = 0;
  // The last event: the link is gone. `reason` is OK if the client closed the link on purpose, else
  // the status given to Close() or the status of the failure. `unconfirmed` has the elements that
  // were sent but are not known to have been received, in the order of sending.
  virtual void OnClosed(const absl::Status& reason, std::vector<Sent> unconfirmed) = 0;
};

// A worker's server of one transport.
class Listener {
 public:
  // Decides by token and session whether to admit a client, before anything else happens on the
  // link. Returns the receiver of the link's events, or an error, which the client gets as the
  // refusal. Called on several threads; must not block.
  using Accept = std::function<absl::StatusOr<std::shared_ptr<SendEvents>>(
      const Hello& hello, std::shared_ptr<SendLink> link)>;
  // The time that clients have to read data that was sent before the listener stopped.
  static constexpr std::chrono::seconds kStopTimeout{1};

  virtual ~Listener() = default;  // closes all its links; no event after it returns
  virtual std::string address() const = 0;
  virtual std::string compatibility() const = 0;  // bytes for the client's Check()
};

struct ListenOptions {
  std::string host = "localhost";  // to bind
  int port = 0;                    // 0: any free port; no meaning for `local`
  TlsConfig tls;                   // `grpc` only
};

// --- The client's end ----------------------------------------------------------

class ReceiveEvents {
 public:
  virtual ~ReceiveEvents() = default;
  // The worker has accepted the link.
  virtual void OnOpen() {}
  // Elements that were received together, in the order of sending, each checked against the spec.
  // The callee must move from all of them, even if it closes the link inside this event. The
  // elements count as received when the event begins (`shm`) or, at the latest, when it returns.
  virtual void OnElements(absl::Span<Element> elements) = 0;
  // An error in place of an element.
  virtual void OnError(const Identity& identity, const absl::Status& error) = 0;
  // The answer to Recall(): `credits` were returned unused. Elements sent before the answer have
  // arrived before it.
  virtual void OnRecalled(Credits credits) = 0;
  // The last event: the link was refused (PermissionDenied), closed by the worker with `reason`, or
  // broken (Unavailable). DataLoss: the worker sent data that is not an element of the spec.
  virtual void OnClosed(const absl::Status& reason) = 0;
};

class ReceiveLink {
 public:
  // Closes the link. After the destructor returns, no event runs, except an event that itself
  // destroys the link; after that event, no further event begins.
  virtual ~ReceiveLink() = default;
  // Grants credits. A worker that has used one of these credits knows, when the link ends, that all
  // elements whose events had returned before this call were received.
  virtual void Grant(Credits credits) = 0;
  // Asks for the credits that the worker has not used. OnRecalled follows.
  virtual void Recall() = 0;
};

// Options of `tcp` links.
struct TcpOptions {
  bool checksum_values = false;  // checksums also cover values (tcp/wire.h)
  int connections = 1;           // per link, 1 to kMaxTcpConnections
};
inline constexpr int kMaxTcpConnections = 16;

struct DialOptions {
  Hello hello;
  Spec spec;             // must admit the iteration's elements
  Pool* pool = nullptr;  // for received elements; outlives the link. nullptr: DefaultPool()
  int64_t max_element_bytes = int64_t{4} << 30;
  absl::Duration timeout = absl::Seconds(10);  // for the worker's answer
  TlsConfig tls;                               // `grpc`, for a worker that speaks TLS
  TcpOptions tcp;
  std::shared_ptr<FilledCounts> filled;  // `shm` only; nullptr: not counted
};

// --- The transport -------------------------------------------------------------

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;
  // "auto" prefers a lower rank.
  virtual int rank() const = 0;
  // NotFound with the reason if the transport cannot run here; Unavailable if the port is taken.
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions& options,
                                                           Listener::Accept accept) = 0;
  // Returns OK if this client can reach the server at `address`, else the reason. Causes no
  // traffic.
  virtual absl::Status Check(std::string_view address, std::string_view compatibility) = 0;
  // Begins a link and returns. OnOpen or OnClosed reports the outcome, possibly before Dial()
  // returns. Credits may be granted immediately. InvalidArgument if `address` cannot be parsed.
  virtual absl::StatusOr<std::unique_ptr<ReceiveLink>> Dial(
      std::string_view address, DialOptions options, std::shared_ptr<ReceiveEvents> events) = 0;
};

// A transport that a worker offers.
struct TransportOffer {
  std::string protocol;
  std::string address;
  std::string compatibility;
  int preference = 0;    // 1, 2, …: its position in the worker's config; 0: not named there
  std::string given_up;  // why this client no longer tries it; empty: still tried
};

// Returns the transport called `name`; NotFound lists the known transports.
absl::StatusOr<Transport*> FindTransport(std::string_view name);
std::vector<std::string> TransportNames();
// AlreadyExists if the name is taken.
absl::Status RegisterTransport(std::unique_ptr<Transport> transport);

// The protocols that a client requests.
struct TransportPreference {
  std::string protocol;                 // or "auto", or empty for "auto"
  std::vector<std::string> fallback;    // for a named protocol, in order
  std::string source = "as asked for";  // its origin: "DistributeOptions", a variable, file:line
};

// The worker's offer that a client accepts, and the reason for the choice: "shm: the best
// available", "tcp: PENSTOCK_DATA_TRANSFER_PROTOCOL", "grpc: local cannot be used (other process)".
struct TransportSelection {
  Transport* transport = nullptr;
  TransportOffer offer;
  std::string reason;
  std::string instead_of;  // a named protocol that could not be used; mostly empty
};
// Selects one of `offers`. If a named protocol cannot be used, and none of `fallback` either,
// returns NotFound "Protocol 'X' is not available for worker 'Y': why". "auto" takes the first
// usable protocol that the worker's config names, else the usable protocol with the lowest rank.
absl::StatusOr<TransportSelection> Negotiate(const TransportPreference& preference,
                                             const std::vector<TransportOffer>& offers,
                                             std::string_view worker);

}  // namespace penstock::transfer
#pragma GCC visibility pop
