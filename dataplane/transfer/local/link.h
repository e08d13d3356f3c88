// SPDX-License-Identifier: Apache-2.0
// A link within one process: the element itself changes hands. Both ends are handles of one
// LocalLink. Events run on the thread that causes them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/local/mailbox.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer::local {

class LocalLink : public std::enable_shared_from_this<LocalLink> {
 public:
  LocalLink(DialOptions options, std::shared_ptr<ReceiveEvents> receiver);

  // Asks the worker to admit the client. Events then begin on both sides, with OnOpen or, if the
  // client is refused, OnClosed with the reason. `ended` is called once, after the worker's side
  // has received its last event.
  void Open(const Listener::Accept& accept, std::function<void(LocalLink*)> ended);

  // Called instead of Open() if no worker listens. OnClosed gets `reason`.
  void NeverOpened(const absl::Status& reason);

  // The worker's calls.
  const Hello& hello() const { return options_.hello; }
  int64_t credits() const { return credits_.load(std::memory_order_acquire); }
  absl::Status Send(Sent&& sent);
  void CloseByWorker(const absl::Status& reason);
  void WaitEnded();  // returns after OnClosed on the worker's side

  // The client's calls.
  void Grant(Credits credits);
  void Recall();
  void CloseByClient();

 private:
  struct ToClient {
    enum Kind { kOpen, kSent, kRecalled, kClosed } kind = kOpen;
    Sent sent;
    int64_t count = 0;
    absl::Status reason;
  };
  struct ToWorker {
    enum Kind { kCredits, kReceived, kClosed } kind = kCredits;
    int64_t count = 0;
    Acknowledged received;
    absl::Status reason;
    std::vector<Sent> unconfirmed;
  };

  void Deliver(ToClient& event);
  void Deliver(ToWorker& event);
  void Receive(Sent& sent);
  absl::Status Check(const Element& element);
  // Ends the client's side. Elements that the client has not received are returned to the worker.
  void End(const absl::Status& reason, std::vector<Sent> unconfirmed = {});
  void NotifyEnded();
  void ReportReceived();

  const DialOptions options_;
  std::atomic<int64_t> credits_{0};
  std::atomic<bool> closing_{false};  // no more Send()
  std::atomic<bool> over_{false};     // End() was called

  // Each of these is used only by the events of one side, and cleared by the last event.
  std::shared_ptr<ReceiveEvents> receiver_;
  std::optional<Acknowledged> unreported_;  // received but not yet reported to the worker
  Spec admitted_;                           // the last spec that `options_.spec` admitted
  std::shared_ptr<SendEvents> sender_;
  std::function<void(LocalLink*)> ended_;

  Mutex mu_;
  Condition all_notified_;
  bool ended_notified_ GUARDED_BY(mu_) = false;

  Mailbox<ToClient> to_client_;
  Mailbox<ToWorker> to_worker_;
};

}  // namespace penstock::transfer::local
