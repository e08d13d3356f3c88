// SPDX-License-Identifier: Apache-2.0
// The engine is the one thread that calls UCX for a worker object. It runs several parts, each of
// which handles one subject: the calls from other threads, the links, the peers, the messages to
// send, or the messages that arrive.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "dataplane/memory/fork_guard.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/ucx/active_worker.h"
#include "dataplane/transfer/ucx/call_queue.h"
#include "dataplane/transfer/ucx/inbox.h"
#include "dataplane/transfer/ucx/link.h"
#include "dataplane/transfer/ucx/link_table.h"
#include "dataplane/transfer/ucx/outbox.h"
#include "dataplane/transfer/ucx/peers.h"
#include "dataplane/transfer/ucx/settings.h"

namespace penstock::transfer::ucx {

class Engine final : private Worker::Events {
 public:
  // Makes the link for a greeting. The link's first message is the hello. Called on the engine's
  // thread.
  using LinkFactory = std::function<std::shared_ptr<Link>()>;

  // If `link_factory` is empty, no client is accepted.
  static absl::StatusOr<std::shared_ptr<Engine>> Start(Resources& resources, Lanes lanes,
                                                       LinkFactory link_factory);
  ~Engine() override;
  // Closes all peers and ends the thread. If called on that thread, only requests the end. Later
  // requests do nothing. All engines are stopped at the program's end.
  void Stop();
  bool stopped() { return calls_.stopped(); }

  uint64_t number() const { return number_; }              // random
  const std::string& address() const { return address_; }  // as text
  // Returns true if a receive did not end in time. UCX may then be in an undefined state, so use a
  // different engine for new links.
  bool unusable() const { return inbox_.unusable(); }

  // False in a forked child, where the engine has no thread and UCX must not be called.
  bool runs() const { return static_cast<bool>(in_creator_); }

  // Any thread. Causes the engine's thread to call the link's OnCall() soon.
  void Call(const std::shared_ptr<Link>& link) { calls_.Call(link); }

  // Call this method and those below on the engine's thread. Attaches the link to the worker object
  // at `address`, and sends the greeting there.
  absl::Status Dial(const std::shared_ptr<Link>& link, std::string_view address,
                    std::string_view hello, uint32_t greeting_flags = 0);
  void Send(Link& link, std::string_view text);
  void Send(Link& link, MessageType type, absl::Span<const std::byte> block, Loan loan);
  // Tells the other end that this end closes the link because of an error.
  void SendBroken(Link& link);
  // Calls OnDeadline() at `deadline`; max(): never. Replaces the deadline that was set before, if
  // any.
  void SetDeadline(Link& link, Clock::time_point deadline) { links_.SetDeadline(link, deadline); }
  // Releases the link, of which no method is called after this.
  void Remove(Link& link);

 private:
  Engine(Resources& resources, Lanes lanes, LinkFactory link_factory);

  // UCX's events, inside Progress():
  void OnMessage(std::string_view head, absl::Span<const std::byte> data) override;
  bool OnOffered(std::string_view head, size_t bytes, Offered offered) override;
  void OnFailed(Worker::Peer peer, const absl::Status& status) override;

  void Run();
  bool Turn();  // true if there was something to do
  bool HandleArrived();
  void HandleGreeting(const Incoming& greeting);
  void RunDeadlines(Clock::time_point now);
  void Sleep();
  void End();
  // Returns false if UCX did not finish with the peers in time.
  bool ClosePeers();
  template <class Condition>
  bool ProgressUntil(Condition condition);

  const ForkGuard in_creator_;
  const LinkFactory link_factory_;
  const uint64_t number_;
  std::string address_;

  ActiveWorker active_;
  CallQueue calls_;
  LinkTable links_;
  Peers peers_;
  Outbox outbox_;
  Inbox inbox_;

  // Used by the thread only.
  uint64_t last_link_ = 0;
  Clock::time_point busy_at_;
  int wasted_spins_ = 0;  // spins in a row that ended in sleep

  Mutex stop_mu_;  // held while the thread is joined
  Thread thread_;
};

}  // namespace penstock::transfer::ucx
