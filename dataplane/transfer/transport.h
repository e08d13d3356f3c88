// SPDX-License-Identifier: Apache-2.0
// How elements go from a worker to a client. A transport is a folder beside
// this file and one line in registry.cc; the same conformance suite runs on all
// (tests/dataplane/transfer/conformance.h).
//
// A link joins one client session to one worker for one iteration. The client
// dials, authorises itself with the job's token, offers credits and receives;
// the worker sends elements against credits. Elements arrive in the order they
// were sent, each once, unless the link breaks; what was sent and not confirmed
// then is in doubt (docs/exactly_once.md, rule 5) and settled by the parties
// above when the client dials again: its Hello says what it has.
//
// Threads: methods of links are for any thread and do not wait. Events come one at
// a time per link, from the transport's threads, one that waits (polling.h) or one
// inside a method of either end (`local`), so call no method of a link, and do not
// wait, while holding a lock that an event takes. Events must not block; they may
// call any method, and may destroy the link they belong to.
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

namespace penstock::transfer {

// What a client has of a partition that came under a placement.
struct Holding {
  PartitionId partition;
  Placement placement;
  IndexSet indices;
};

// What the client says first on a new link.
struct Hello {
  std::string token;  // of the job; a link with another one is refused: PermissionDenied
  ClientId client;
  Incarnation incarnation;
  IterationId iteration;
  // Of what this worker sent it, what it has and the worker may not know that it
  // has. Collected after its earlier link to this worker (if any) was destroyed,
  // so that nothing can be received any more behind its back.
  std::vector<Holding> holdings;
  // Of what the worker sends, where the protocol goes over a network.
  LinkCompression compression = LinkCompression::kNone;
};

// Room for `count` more elements.
struct Credits {
  int64_t count = 0;
};

// --- The worker's end --------------------------------------------------------

// One element, or an error in an element's place.
struct Sent {
  Sent() = default;
  Sent(Element its) : identity(its.identity()), element(std::move(its)) {}  // as its head says
  Sent(const Identity& identity, Element element)
      : identity(identity), element(std::move(element)) {}
  Sent(const Identity& identity, absl::Status error)
      : identity(identity), error(std::move(error)) {}

  // Members of a group share an element, whose head has the first member's index.
  Identity identity;
  Element element;     // empty for an error
  absl::Status error;  // OK for an element
};

// One of what was sent, once the client has it.
struct Acknowledged {
  Identity identity;
  int64_t bytes = 0;  // of the element's block; 0 for an error
};

// One accepted link. Destroying it closes it (Cancelled).
class SendLink {
 public:
  virtual ~SendLink() = default;
  virtual const Hello& hello() const = 0;
  // Credits not used yet. Only Send() and a client that recalls them make them fewer.
  virtual int64_t credits() const = 0;
  // Sends it against one credit. Without one it is FailedPrecondition, on a closed
  // link Unavailable, above what the protocol can carry InvalidArgument, and `sent`
  // stays the caller's. The link keeps it, or a copy, until it was received. An
  // element below 256 KiB may wait up to 2 ms for others to go with.
  virtual absl::Status Send(Sent&& sent) = 0;
  // Where a block for this link is best made (Pool::LendBlock): in memory of the
  // client's, if some is free, from where Send() moves it without a copy. It may
  // be sent on any link all the same. nullptr: anywhere is as good.
  virtual std::shared_ptr<Pool> pool() { return nullptr; }
  // Sends a frame that waits for more elements: call when nothing more comes at once.
  virtual void Flush() = 0;
  // Closes; the client sees `reason`. What was sent before still arrives if the
  // link holds. OnClosed follows.
  virtual void Close(const absl::Status& reason) = 0;
};

// What happens on a worker's link.
class SendEvents {
 public:
  virtual ~SendEvents() = default;
  // That many more may be sent.
  virtual void OnCredits(Credits granted) = 0;
  // The client has received these, the oldest sent and not received so far.
  virtual void OnReceived(absl::Span<const Acknowledged> received) = 0;
  // The link is gone, the last event. `reason` is OK if the client closed it on
  // purpose, else the status given to Close() or what broke it. `unconfirmed`
  // was sent and is not known to be received, in the order of sending.
  virtual void OnClosed(const absl::Status& reason, std::vector<Sent> unconfirmed) = 0;
};

// A worker's transport server.
class Listener {
 public:
  // Decides by token and session, before anything else happens on the link, and
  // gives the events' receiver, or refuses with a status that the client sees.
  // From several threads; must not block.
  using Accept = std::function<absl::StatusOr<std::shared_ptr<SendEvents>>(
      const Hello& hello, std::shared_ptr<SendLink> link)>;
  // How long clients may take to read what was sent before a listener stopped.
  static constexpr std::chrono::seconds kStopTimeout{1};

  virtual ~Listener() = default;  // closes all its links; no event after it returns
  virtual std::string address() const = 0;
  virtual std::string compatibility() const = 0;  // bytes for the client's check
};

struct ListenOptions {
  std::string host = "localhost";  // to bind
  int port = 0;                    // 0: any free port; without meaning for `local`
  TlsConfig tls;                   // of `grpc`
};

// --- The client's end ----------------------------------------------------------

class ReceiveEvents {
 public:
  virtual ~ReceiveEvents() = default;
  // The worker has accepted the link.
  virtual void OnOpen() {}
  // Elements that were received together, in the order of sending, each checked against
  // the spec; all are to be moved from, even where the link is closed inside: they
  // count as received from when this begins (`shm`) or, at the latest, has returned.
  virtual void OnElements(absl::Span<Element> elements) = 0;
  // An error stands in the place of an element.
  virtual void OnError(const Identity& identity, const absl::Status& error) = 0;
  // The answer to Recall(): that many credits came back unused. An element sent
  // before has come before it.
  virtual void OnRecalled(Credits credits) = 0;
  // The link is gone, the last event: refused (PermissionDenied), closed by the
  // worker with this reason, or broken (Unavailable). DataLoss: it sent what is
  // no element of the spec.
  virtual void OnClosed(const absl::Status& reason) = 0;
};

class ReceiveLink {
 public:
  // Closes it. No event after it returns; from inside an event of this link: no
  // further one.
  virtual ~ReceiveLink() = default;
  // When the link's end is told, a worker that has used one of these credits
  // also knows that all was received which came in events that have returned.
  virtual void Grant(Credits credits) = 0;
  // Asks for the credits that the worker has not used; OnRecalled follows.
  virtual void Recall() = 0;
};

// Of links over `tcp`.
struct TcpOptions {
  bool checksum_values = false;  // sums over values too (tcp/wire.h)
  int connections = 1;           // of a link, 1 to kMaxTcpConnections
};
inline constexpr int kMaxTcpConnections = 16;

struct DialOptions {
  Hello hello;
  Spec spec;             // what the iteration's elements must admit
  Pool* pool = nullptr;  // where they are received; outlives the link. nullptr: DefaultPool()
  int64_t max_element_bytes = int64_t{4} << 30;
  absl::Duration timeout = absl::Seconds(10);  // until the worker has answered
  TlsConfig tls;                               // of `grpc`, for a worker that speaks TLS
  TcpOptions tcp;
  std::shared_ptr<FilledCounts> filled;  // of `shm`; nullptr: not counted
};

// --- The transport -------------------------------------------------------------

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;
  // Lower is preferred by "auto".
  virtual int rank() const = 0;
  // NotFound with the reason where it cannot run here; Unavailable if the port
  // is taken.
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions& options,
                                                           Listener::Accept accept) = 0;
  // Whether this client can reach that server; the reason if not. No traffic.
  virtual absl::Status Check(std::string_view address, std::string_view compatibility) = 0;
  // Begins a link and returns; OnOpen or OnClosed tells how it went (possibly
  // before it returns). Credits may be granted at once. InvalidArgument for an
  // address that is not one.
  virtual absl::StatusOr<std::unique_ptr<ReceiveLink>> Dial(
      std::string_view address, DialOptions options, std::shared_ptr<ReceiveEvents> events) = 0;
};

// A transport a worker offers.
struct TransportOffer {
  std::string protocol;
  std::string address;
  std::string compatibility;
  int preference = 0;    // 1, 2, …: the worker's config names it, in that order; 0: it does not
  std::string given_up;  // why this client tries it no more; empty: it may
};

// The transport of that name; NotFound lists the known ones.
absl::StatusOr<Transport*> FindTransport(std::string_view name);
std::vector<std::string> TransportNames();
// AlreadyExists for a name that is taken.
absl::Status RegisterTransport(std::unique_ptr<Transport> transport);

// What a client asks for.
struct TransportPreference {
  std::string protocol;                 // or "auto", or empty for the same
  std::vector<std::string> fallback;    // of a named protocol, in order
  std::string source = "as asked for";  // who said so: "DistributeOptions", a variable, file:line
};

// Which of a worker's offers a client takes, and why in words: "shm: the best of
// all", "tcp: PENSTOCK_DATA_TRANSFER_PROTOCOL", "grpc: local is not possible
// (other process)".
struct TransportSelection {
  Transport* transport = nullptr;
  TransportOffer offer;
  std::string reason;
  std::string instead_of;  // the named protocol that was not possible; mostly empty
};
// A named protocol is NotFound "Protocol 'X' is not available for worker 'Y':
// why" unless one of `fallback` is. With "auto" it is the first that both can do
// of those that the worker prefers, else the one with the lowest rank.
absl::StatusOr<TransportSelection> Negotiate(const TransportPreference& preference,
                                             const std::vector<TransportOffer>& offers,
                                             std::string_view worker);

}  // namespace penstock::transfer
