// SPDX-License-Identifier: Apache-2.0
// The worker's end of a link: an accepted connection, unauthenticated until its hello has been
// accepted. The thread that sends also writes to the socket, immediately; if the socket is full,
// the loop continues. Part of the data may wait for more, at most until Flush() (write_delay.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "control/sync/mutex.h"
#include "dataplane/transfer/send_queue.h"
#include "dataplane/transfer/tcp/incoming.h"
#include "dataplane/transfer/tcp/link_writer.h"
#include "dataplane/transfer/tcp/loop.h"
#include "dataplane/transfer/tcp/message_writer.h"
#include "dataplane/transfer/tcp/send_stripes.h"
#include "dataplane/transfer/tcp/socket.h"
#include "dataplane/transfer/tcp/write_delay.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer::tcp {

// The socket's events run on the loop's serving thread.
class SendSocket : public Loop::Member, public std::enable_shared_from_this<SendSocket> {
 public:
  // The object that accepted the connection. Called on the loop's serving thread.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual absl::StatusOr<std::shared_ptr<SendEvents>> Accept(const Hello& hello,
                                                               std::shared_ptr<SendLink> link) = 0;
    // Returns the link whose key() is `key`, or nullptr.
    virtual std::shared_ptr<SendSocket> FindLink(const StripeKey& key) = 0;
    // Returns the loop that serves the further connections with the number `stripe`.
    virtual absl::StatusOr<std::shared_ptr<Loop>> LoopOf(uint32_t stripe) = 0;
    // The hello or the key of a link was accepted: the client is authenticated.
    virtual void OnAuthenticated(SendSocket& socket) = 0;
    // This is the last call on the object.
    virtual void OnOver(SendSocket& socket) = 0;
  };

  // `owner` lives until OnOver() or until the loop has been stopped.
  SendSocket(std::shared_ptr<Loop> loop, Socket socket, Owner& owner);
  // Starts the time limit for the hello. Call once, on the serving thread.
  absl::Status Start(std::chrono::milliseconds hello_timeout);

  // On the serving thread. Returns the key for further connections, once it has been generated;
  // zeros until then.
  const StripeKey& key() const { return key_; }
  // On the serving thread. Adds a further connection to this link.
  absl::Status AddStripe(uint32_t number, std::shared_ptr<Loop> loop, Socket socket);

  // Same as in SendLink.
  const Hello& hello() const { return hello_; }
  int64_t credits() const;
  absl::Status Send(Sent&& sent);
  void Flush();
  void Close(const absl::Status& reason);
  // Ends the link without a message to the client; for a client that does not read. Any thread.
  void Break(const absl::Status& reason);

 private:
  void OnReady(uint32_t events) override;
  void OnDeadline() override;

  // On the serving thread:
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
  // Writes until the socket is full or everything is written, unless another thread is writing.
  // Releases the lock while it writes.
  void Write() REQUIRES(mu_);
  void TakeMessages() REQUIRES(mu_);
  QueuedMessage NextMessage() REQUIRES(mu_);
  void ShutDown() REQUIRES(mu_);

  const std::shared_ptr<Loop> loop_;
  Owner& owner_;

  // Used by the serving thread only.
  Incoming incoming_{kMaxRequestBytes};
  bool hello_received_ = false;
  bool draining_ = false;  // data that still arrives is dropped
  bool over_ = false;
  Hello hello_;    // constant once accepted
  StripeKey key_;  // constant once accepted
  std::shared_ptr<SendEvents> events_;
  std::vector<Acknowledged> received_;  // reported by one update

  LinkWriter writer_;  // used by the writing thread only

  mutable Mutex mu_;
  Socket socket_;  // the serving thread closes it with mu_ held, while no thread writes
  SendQueue queue_ GUARDED_BY(mu_);
  WriteDelay delay_ GUARDED_BY(mu_);
  bool writing_ GUARDED_BY(mu_) = false;    // a thread is writing
  bool writable_ GUARDED_BY(mu_) = true;    // according to the last write or event
  bool shut_down_ GUARDED_BY(mu_) = false;  // nothing more is written; waits for the client's end
  bool broken_ GUARDED_BY(mu_) = false;     // must be ended immediately
  SendStripes stripes_ GUARDED_BY(mu_);
};

}  // namespace penstock::transfer::tcp
