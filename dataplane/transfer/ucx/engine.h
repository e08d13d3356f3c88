// SPDX-License-Identifier: Apache-2.0
// The engine is the one thread that calls UCX for a worker object. It manages the peers of links,
// puts their messages in order, and fetches elements into slots.
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "dataplane/memory/device/gpu_direct_pool.h"
#include "dataplane/memory/fork_guard.h"
#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/ucx/fabric.h"
#include "dataplane/transfer/ucx/memory.h"
#include "dataplane/transfer/ucx/ports.h"
#include "dataplane/transfer/ucx/settings.h"
#include "dataplane/transfer/ucx/wire.h"
#include "penstock/loan.h"

namespace penstock::transfer::ucx {

class Engine final : private Worker::Events {
 public:
  using Clock = SteadyClock;

  // One message that has arrived for a link.
  struct Incoming {
    Head head;
    uint32_t text_bytes = 0;
    std::array<char, kMaxInlineText> inline_text;
    std::string long_text;        // or a block's head, until it is fetched
    uint32_t greeting_flags = 0;  // the client's requests (wire.h)
    Loan loan;  // has the block in its first `bytes`; with `on_device` only its head
    size_t bytes = 0;
    // Bytes of the body on a device; nullopt: the body is in the loan.
    std::optional<size_t> on_device;
    absl::Status status;  // the reason if the block is missing
    Offered offered = nullptr;
    enum { kMissing, kFetching, kReady } state = kMissing;

    std::string_view text() const {
      return long_text.empty() ? std::string_view(inline_text.data(), text_bytes) : long_text;
    }
  };

  // One end of a link. All methods are called on the engine's thread.
  class Link : public std::enable_shared_from_this<Link> {
   public:
    virtual ~Link() = default;

   private:
    friend class Engine;
    // Admit() returns OK if the link accepts such a block. Room() then returns a slot for it. For
    // small blocks both are called inside Progress().
    virtual absl::Status Admit(uint32_t kind, size_t bytes) = 0;
    virtual absl::StatusOr<Loan> Room(size_t bytes) = 0;
    // Returns a place on a device for an announced body; nullopt: the body is received in Room(),
    // after its head.
    virtual std::optional<DevicePlace> RoomOnDevice(size_t /*head_bytes*/, size_t /*body_bytes*/) {
      return std::nullopt;
    }
    // Called in the order of sending.
    virtual void OnIncoming(Incoming incoming) = 0;
    virtual void OnCall() = 0;
    virtual void OnDeadline() = 0;
    // The peer is lost: nothing more is received or sent.
    virtual void OnLost(const absl::Status& reason) = 0;

    uint64_t number_ = 0;  // 0: not attached
    uint64_t dialler_ = 0;
    Worker::Peer peer_ = 0;
    uint64_t sent_ = 0;     // number of messages
    uint64_t arrived_ = 0;  // number of messages received in order
    Fifo<Incoming> waiting_;
    bool two_pieces_ = false;  // the other end wants elements in two pieces
    Clock::time_point deadline_ = Clock::time_point::max();
    bool called_ GUARDED_BY(&Engine::mu_) = false;
  };

  // Makes the link for a greeting, whose first message is the hello. Called on the engine's thread.
  using LinkFactory = std::function<std::shared_ptr<Link>()>;

  // If there is no `link_factory`, no client is accepted.
  static absl::StatusOr<std::shared_ptr<Engine>> Start(Resources& resources, Lanes lanes,
                                                       LinkFactory link_factory);
  ~Engine() override;
  // Closes all peers and ends the thread. If called on that thread, it only requests the end. Later
  // requests do nothing. All engines are stopped at the program's end.
  void Stop();
  bool stopped();

  uint64_t number() const { return number_; }              // random
  const std::string& address() const { return address_; }  // as text
  // Returns true if a receive did not end in time. UCX may then be in an undefined state, so dial
  // with a different engine.
  bool unusable() const { return unusable_; }

  // False in a forked child, where the engine has no thread and UCX must not be called.
  bool runs() const { return static_cast<bool>(in_creator_); }

  // Any thread. Calls OnCall() soon.
  void Call(const std::shared_ptr<Link>& link);

  // Call this method and those below on the engine's thread. Attaches the link to the other end's
  // worker object and sends it the greeting.
  absl::Status Dial(const std::shared_ptr<Link>& link, std::string_view address,
                    std::string_view hello, uint32_t greeting_flags = 0);
  void Send(Link& link, std::string_view text);
  void Send(Link& link, MessageType type, absl::Span<const std::byte> block, Loan loan);
  // Tells the other end that this end closes the link because of an error.
  void SendBroken(Link& link);
  // Calls OnDeadline() at `deadline`, in place of an earlier one; max(): never.
  void SetDeadline(Link& link, Clock::time_point deadline);
  // Releases the link; no method of it is called after this.
  void Remove(Link& link);

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // dialler and number

  struct Sending;
  struct Fetching;
  struct Peer;
  struct Held {
    Loan loan;
    Clock::time_point until;
  };

  Engine(Resources& resources, Lanes lanes, LinkFactory link_factory);

  // UCX's events, inside Progress():
  void OnMessage(std::string_view head, absl::Span<const std::byte> data) override;
  bool OnOffered(std::string_view head, size_t bytes, Offered offered) override;
  void OnFailed(Worker::Peer peer, const absl::Status& status) override;

  void Run();
  bool Turn();  // true if there was something to do
  void Sleep();
  // Returns false if UCX did not finish with them in time.
  bool ClosePeers();
  template <class Condition>
  bool ProgressUntil(Condition condition);
  void End();
  bool HandleArrived();
  bool RunCalls();
  void RunDeadlines(Clock::time_point now);

  std::shared_ptr<Link> Find(const Head& head) const;
  void HandleGreeting(const Incoming& incoming);
  void Sort(Incoming incoming);
  void Fetch(Link& link, Incoming& incoming);
  void Fetched(Fetching& fetching);
  void Deliver(const std::shared_ptr<Link>& link);

  absl::StatusOr<Worker::Peer> PeerAt(const std::string& name, std::string_view address);
  absl::Status CheckLanes(const Peer& peer) const;
  void Fail(Worker::Peer peer, const absl::Status& status);
  void FailUnanswered(Clock::time_point now);
  // Fails the peers that use ports that went down.
  void LookAtPorts(Clock::time_point now);
  // Stops sending to the peer. Closes the peer if UCX can do that; otherwise the peer stays until
  // the engine's end.
  void Close(Peer& peer);
  bool MayClose(const Peer& peer) const;
  void Attach(const std::shared_ptr<Link>& link, Key key, Worker::Peer peer);
  Sending& NewSending(Link& link, uint32_t kind);
  void Post(Sending& sending, Worker::Message message);

  const ForkGuard in_creator_;
  Resources& resources_;
  const Lanes lanes_;
  const LinkFactory link_factory_;
  const uint64_t number_;
  std::string address_;
  std::unique_ptr<Worker> worker_;
  std::atomic<bool> unusable_{false};

  // Used by the thread only.
  std::map<Key, std::shared_ptr<Link>> links_;
  uint64_t last_link_ = 0;
  uint64_t last_connection_ = 0;
  std::map<Worker::Peer, std::unique_ptr<Peer>> peers_;
  std::map<std::string, Worker::Peer> open_;  // by name
  std::vector<std::unique_ptr<Sending>> sendings_;
  std::vector<Sending*> idle_sendings_;
  std::vector<std::unique_ptr<Fetching>> fetchings_;
  std::vector<Fetching*> idle_fetchings_;
  Ports ports_;  // none if the lanes are not RDMA
  Clock::time_point next_look_at_ports_;
  std::vector<Held> held_;  // QUARANTINED: a lost peer may still read them
  // Noted inside Progress(), handled after it.
  Fifo<Incoming> inbox_;
  Fifo<Fetching*> fetched_;
  std::vector<std::pair<Worker::Peer, absl::Status>> failed_;
  std::vector<Worker::Peer> closed_;
  std::vector<std::shared_ptr<Link>> due_;  // empty between two turns of the loop
  Clock::time_point next_deadline_ = Clock::time_point::max();
  Clock::time_point busy_at_;
  int under_way_ = 0;     // number of pending sends and receives
  int wasted_spins_ = 0;  // in a row that ended in sleep

  Mutex mu_;
  Fifo<std::shared_ptr<Link>> calls_ GUARDED_BY(mu_);
  bool asleep_ GUARDED_BY(mu_) = false;
  bool stopping_ GUARDED_BY(mu_) = false;
  bool stopped_ GUARDED_BY(mu_) = false;

  Mutex stop_mu_;  // held while the thread is joined
  Thread thread_;
};

}  // namespace penstock::transfer::ucx
