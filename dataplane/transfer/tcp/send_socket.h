// SPDX-License-Identifier: Apache-2.0
// The worker's end of a link: a connection that somebody made, unauthenticated until
// its hello was accepted. Whoever sends writes to the socket at once, and the
// loop goes on when it was full. A frame that is not full waits until it was open
// for 1 ms at least and 2 ms at most, or until Flush(). So do elements that follow
// each other fast, until they are worth a system call and its packets.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "control/sync/mutex.h"
#include "dataplane/transfer/link_codec.h"
#include "dataplane/transfer/send_queue.h"
#include "dataplane/transfer/tcp/incoming.h"
#include "dataplane/transfer/tcp/loop.h"
#include "dataplane/transfer/tcp/message_writer.h"
#include "dataplane/transfer/tcp/send_stripe.h"
#include "dataplane/transfer/tcp/socket.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer::tcp {

// Its events come from whoever serves the loop.
class SendSocket : public Loop::Member, public std::enable_shared_from_this<SendSocket> {
 public:
  // Whoever accepted the connection; told by whoever serves the loop.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual absl::StatusOr<std::shared_ptr<SendEvents>> Accept(const Hello& hello,
                                                               std::shared_ptr<SendLink> link) = 0;
    // The link with that key(), or nullptr.
    virtual std::shared_ptr<SendSocket> FindLink(const StripeKey& key) = 0;
    // Of the links' further connections with that number.
    virtual absl::StatusOr<std::shared_ptr<Loop>> LoopOf(uint32_t stripe) = 0;
    // Its hello was accepted: it is no longer unauthenticated.
    virtual void OnAuthenticated(SendSocket& socket) = 0;
    // The last that happens.
    virtual void OnOver(SendSocket& socket) = 0;
  };

  // `owner` lives until OnOver() or until the loop was stopped.
  SendSocket(std::shared_ptr<Loop> loop, Socket socket, Owner& owner);
  // To be called once, by whoever serves. From here on the time to say hello runs.
  absl::Status Start(std::chrono::milliseconds hello_timeout);

  // By whoever serves. What further connections join by, once it was told; zeros until then.
  const StripeKey& key() const { return key_; }
  // By whoever serves. A further connection of this link, from now on.
  absl::Status AddStripe(uint32_t number, std::shared_ptr<Loop> loop, Socket socket);

  // As SendLink's.
  const Hello& hello() const { return hello_; }
  int64_t credits() const;
  absl::Status Send(Sent&& sent);
  void Flush();
  void Close(const absl::Status& reason);
  // Ends it without a word to the client, for one that does not read. Any thread.
  void Break(const absl::Status& reason);

 private:
  struct Stripe {
    uint32_t number = 0;
    std::shared_ptr<SendStripe> connection;
  };

  void OnReady(uint32_t events) override;
  void OnDeadline() override;

  // By whoever serves:
  absl::Status ReadOn();
  absl::Status MakeRoom();
  absl::Status Handle();
  absl::Status HandleHello(Hello hello);
  absl::Status HandOver();
  absl::Status Handle(const Update& update);
  void StopReading(const absl::Status& reason);
  void EndIfOver();

  void BreakLocked(const absl::Status& reason) REQUIRES(mu_);
  void FlushLater() REQUIRES(mu_);
  // Whether what was sent just now, of so many bytes, may wait for more to go with.
  bool Holds(size_t bytes) REQUIRES(mu_);
  // Writes until the socket is full or all is written, unless another thread does.
  // Lets go of the lock meanwhile.
  void Write() REQUIRES(mu_);
  void TakeMessages() REQUIRES(mu_);
  QueuedMessage NextMessage() REQUIRES(mu_);
  QueuedMessage OverStripes(QueuedMessage element) REQUIRES(mu_);
  void ShutDown() REQUIRES(mu_);

  // By whoever writes, without mu_:
  void EncodeMessage(QueuedMessage& message);

  const std::shared_ptr<Loop> loop_;
  Owner& owner_;

  // Of whoever serves.
  Incoming incoming_{kMaxRequestBytes};
  bool hello_received_ = false;
  bool draining_ = false;  // what still comes is dropped
  bool over_ = false;
  Hello hello_;       // constant once accepted, as is
  uint8_t sums_ = 0;  // whether sums are of whole bodies: kSumOfAll
  StripeKey key_;     // constant once accepted
  std::shared_ptr<SendEvents> events_;
  std::vector<Acknowledged> received_;  // told by one update

  LinkCodec codec_{DefaultPool()};

  // Of whoever writes.
  MessageWriter writer_;

  mutable Mutex mu_;
  Socket socket_;  // open until whoever serves ends it with mu_ held, while nobody writes
  SendQueue queue_ GUARDED_BY(mu_);
  bool deadline_set_ GUARDED_BY(mu_) = false;  // for the frame that is open, or what is held
  uint64_t frame_ GUARDED_BY(mu_) = 0;         // which it was then
  size_t held_bytes_ GUARDED_BY(mu_) = 0;      // of what waits for more to go with
  Loop::Clock::time_point last_send_ GUARDED_BY(mu_);
  bool writing_ GUARDED_BY(mu_) = false;    // by some thread
  bool writable_ GUARDED_BY(mu_) = true;    // as far as is known
  bool shut_down_ GUARDED_BY(mu_) = false;  // nothing more goes out; waits for the client's end
  bool broken_ GUARDED_BY(mu_) = false;     // to be ended at once
  std::vector<Stripe> stripes_ GUARDED_BY(mu_);
  size_t next_connection_ GUARDED_BY(mu_) =
      0;  // over which the next large element goes; 0: this one
};

}  // namespace penstock::transfer::tcp
