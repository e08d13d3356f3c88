// SPDX-License-Identifier: Apache-2.0
// The worker's end of a link to a client that has sent a greeting. The client is unauthenticated
// until its hello has been accepted. The thread that sends an element queues it for the engine's
// thread. A frame that is not full waits until it has been open for 1 to 2 ms, or until Flush().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "control/sync/mutex.h"
#include "dataplane/transfer/send_queue.h"
#include "dataplane/transfer/transport.h"
#include "dataplane/transfer/ucx/engine.h"

namespace penstock::transfer::ucx {

// The link's events run on the engine's thread.
class SendEnd final : public Link {
 public:
  // The object that accepted the link. Called on the engine's thread.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual absl::StatusOr<std::shared_ptr<SendEvents>> OnHello(const Hello& hello,
                                                                std::shared_ptr<SendLink> link) = 0;
    // This is the last call on the object.
    virtual void OnOver(SendEnd& end) = 0;
  };

  // `owner` lives until OnOver() or until the engine has been stopped. `slots` is the best pool for
  // making elements.
  SendEnd(std::shared_ptr<Engine> engine, std::shared_ptr<Pool> slots, Owner& owner);

  // Same as in SendLink.
  const Hello& hello() const { return hello_; }
  int64_t credits() const;
  absl::Status Send(Sent&& sent);
  void Flush();
  void Close(const absl::Status& reason);
  const std::shared_ptr<Pool>& slots() const { return slots_; }
  // Ends the link without a message to the client; for a client that does not answer. Any thread.
  void Break(const absl::Status& reason);

 private:
  absl::Status Admit(uint32_t kind, size_t bytes) override;
  absl::StatusOr<Loan> Room(size_t bytes) override;
  void OnIncoming(Incoming incoming) override;
  void OnCall() override;
  void OnDeadline() override;
  void OnLost(const absl::Status& reason) override;

  absl::Status Handle(const Incoming& incoming);
  absl::Status HandleHello(Hello hello);
  void Pump();
  void End(const absl::Status& reason);
  std::shared_ptr<SendEnd> self() { return std::static_pointer_cast<SendEnd>(shared_from_this()); }
  // Calls the engine if the engine has something to do.
  void Ask() REQUIRES(mu_);

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<Pool> slots_;
  Owner& owner_;

  // Used by the engine's thread only.
  bool hello_received_ = false;
  bool draining_ = false;  // messages are dropped, except the end
  bool over_ = false;
  bool close_sent_ = false;  // waits for the client's end
  Hello hello_;              // constant once accepted
  std::shared_ptr<SendEvents> events_;
  std::vector<Acknowledged> received_;  // reported by one update

  mutable Mutex mu_;
  SendQueue queue_ GUARDED_BY(mu_);
  bool deadline_asked_ GUARDED_BY(mu_) = false;  // for the open frame
  bool deadline_set_ GUARDED_BY(mu_) = false;
  uint64_t frame_ GUARDED_BY(mu_) = 0;  // the open frame when the deadline was set
  bool broken_ GUARDED_BY(mu_) = false;
};

}  // namespace penstock::transfer::ucx
