// SPDX-License-Identifier: Apache-2.0
// Bounds on the peers of the dispatcher's port, none of which is trusted before its hello. Knows no
// network: service.cc tells it about streams and calls, and it says which of them must end. Each
// refusal is counted (control/observe/refused.h). docs/security.md lists the numbers.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/observe/connection_pace.h"
#include "control/sync/mutex.h"

namespace penstock::control {

struct PortLimits {
  size_t unidentified = 256;  // streams without a hello; above this, the oldest is refused
  size_t streams = 32'768;    // in all; above this, a new stream is refused
  size_t calls = 4'096;       // that have not ended; above this, the oldest is cancelled
  absl::Duration hello_timeout = absl::Seconds(10);
  // For a connection whose peer is not known; longer, so that a refusal can be read.
  absl::Duration unauthenticated_timeout = absl::Seconds(15);
  absl::Duration read_timeout = absl::Seconds(60);      // for a peer that does not read
  absl::Duration read_time_per_mib = absl::Seconds(1);  // more, for a call's answer
  size_t unread_bytes = size_t{256} << 20;              // of one stream
  // Of all requests and answers of calls, as the process holds them. Above this, the newest answer
  // is not given unless it adds little, and answers must be read within `pressed_read_timeout` and
  // the time for their size.
  size_t call_bytes = size_t{2} << 30;
  absl::Duration pressed_read_timeout = absl::Seconds(5);
  // An answer that adds at most this is given all the same: the number of calls bounds their sum.
  size_t small_answer_bytes = size_t{64} << 10;
  // Answers with a piece of a dataset that are under way at once (dataset_pieces.h). One that its
  // peer has not read after `dataset_piece_time` no longer counts, so that a peer that does not
  // read cannot hold up the others.
  size_t dataset_pieces = 64;
  absl::Duration dataset_piece_time = absl::Seconds(5);
  // Calls that wait for such an answer; above this, a new one is Unavailable. Fewer than `calls`,
  // so that none of them is cancelled, and the oldest one is answered next.
  size_t waiting_dataset_pieces = 1'000;
  // A registered definition of 512 MiB (dataset_registry.cc), and the rest of its request.
  size_t message_bytes = size_t{576} << 20;
  size_t received_bytes = size_t{2} << 30;  // that the network holds for messages, of all peers
  // Of the connections of strangers. A fleet of ten thousand may come at once, from one address.
  PaceLimits pace = {.waiting = 1 << 14};
};

// A stream or a call. Its methods may be called by any thread while it is in the PortBounds, and
// must not call the PortBounds.
class PortUser {
 public:
  virtual ~PortUser() = default;
  // Ends it with `why`, or breaks it off if something is unread.
  virtual void Refuse(const absl::Status& why) = 0;
  // Breaks it off, no matter what is unread.
  virtual void Cancel() = 0;
  // The time since which something is unread; InfiniteFuture if nothing is. gRPC does not say how
  // much of a call's answer the peer has read, so this is the time of the answer.
  virtual absl::Time UnreadSince() const = 0;
};

// An object that several answers keep. It counts once, as long as one of them is unread.
struct SharedObject {
  const void* object = nullptr;  // its identity; null: the answer keeps none
  size_t bytes = 0;
  size_t read_bytes = 0;  // the part of `bytes` that a peer reads
};

// Any thread may call any method.
class PortBounds {
 public:
  // Called with the address of a client (grpc::ServerContext::peer()) that was served, so that it
  // is no longer a stranger. May be called by any thread, and repeatedly for a client.
  using Proved = std::function<void(const std::string& peer)>;

  explicit PortBounds(
      const PortLimits& limits, Proved proved = [](const std::string&) {})
      : limits_(limits), proved_(std::move(proved)) {}

  // A call has succeeded, or a hello was accepted.
  void OnServed(const std::string& peer) const { proved_(peer); }

  // A stream begins. ResourceExhausted if there are too many; the stream is added all the same. May
  // refuse the oldest stream without a hello.
  absl::Status AddStream(PortUser& stream, absl::Time now);
  // The stream has sent its hello, which the core accepts or refuses.
  void Identified(const PortUser& stream);
  // A call begins: its head has arrived. May cancel the oldest call.
  void AddCall(PortUser& call, absl::Time now);
  // The call's request, of that size, has arrived.
  void Request(const PortUser& call, size_t bytes);
  // The call gets an answer that has `bytes` of its own, and keeps `shared`. Unavailable if too
  // many bytes are held: the answer must be dropped.
  absl::Status Answer(const PortUser& call, size_t bytes, absl::Time now,
                      const SharedObject& shared = {});
  // It is over. The object is not used after this call.
  void Remove(const PortUser& user);

  // Ends what is late. Called several times a second.
  void Sweep(absl::Time now);

  const PortLimits& limits() const { return limits_; }

 private:
  struct Entry {
    PortUser* user;
    absl::Time since;
    size_t bytes = 0;              // of a call, without the shared object
    bool ended = false;            // it was refused or cancelled, but is not over yet
    size_t answer = 0;             // bytes that the peer must read
    const void* shared = nullptr;  // SharedObject::object
  };
  struct Sharers {
    int calls = 0;
    size_t bytes = 0;
  };
  using Entries = std::list<Entry>;  // oldest first

  absl::Status MakeRoom(size_t bytes, absl::Time now) REQUIRES(mu_);
  void CancelUnread(Entries& entries, absl::Time before) REQUIRES(mu_);
  absl::Duration TimeToRead(const Entry& entry) const;  // beyond the timeout

  const PortLimits limits_;
  const Proved proved_;
  Mutex mu_;
  Entries unidentified_ GUARDED_BY(mu_);
  Entries streams_ GUARDED_BY(mu_);  // identified
  Entries calls_ GUARDED_BY(mu_);
  std::map<const void*, Sharers> sharers_ GUARDED_BY(mu_);  // of each shared object
  size_t call_bytes_ GUARDED_BY(mu_) = 0;                   // of calls_ and of the shared objects
  absl::Time swept_ GUARDED_BY(mu_) = absl::InfinitePast();
};

}  // namespace penstock::control
