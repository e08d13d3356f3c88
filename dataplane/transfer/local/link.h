// SPDX-License-Identifier: Apache-2.0
// A link inside one process: the element itself changes hands. Both ends are
// handles on one LocalLink; events run on the thread that causes them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "control/sync/mutex.h"
#include "dataplane/transfer/local/mailbox.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer {

class LocalLink : public std::enable_shared_from_this<LocalLink> {
 public:
  LocalLink(DialOptions options, std::shared_ptr<ReceiveEvents> receiver);

  // Asks the worker; then events begin on both sides: OnOpen, or OnClosed with
  // the refusal. `ended` is called once, when the worker's side has seen the end.
  void Open(const Listener::Accept& accept, std::function<void(LocalLink*)> ended);

  // In place of Open(), when there is nobody to ask.
  void NeverOpened(const absl::Status& reason);

  // The worker's calls.
  const Hello& hello() const { return options_.hello; }
  int64_t credits() const { return credits_.load(std::memory_order_acquire); }
  absl::Status Send(Sent&& sent);
  void CloseByWorker(const absl::Status& reason);
  void WaitEnded();  // until OnClosed has returned on the worker's side

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
  // The client's side is over; what it did not get goes back to the worker.
  void End(const absl::Status& reason, std::vector<Sent> unconfirmed = {});
  void NotifyEnded();
  void ReportReceived();

  const DialOptions options_;
  std::atomic<int64_t> credits_{0};
  std::atomic<bool> closing_{false};  // no more Send()
  std::atomic<bool> over_{false};     // End() was called

  // Used by the events of their side only, and cleared by its last.
  std::shared_ptr<ReceiveEvents> receiver_;
  std::optional<Acknowledged> unreported_;  // at the client, the worker not told yet
  Spec admitted_;                           // found to fit what the client expects
  std::shared_ptr<SendEvents> sender_;
  std::function<void(LocalLink*)> ended_;

  Mutex mu_;
  std::condition_variable all_notified_;
  bool ended_notified_ GUARDED_BY(mu_) = false;

  Mailbox<ToClient> to_client_;
  Mailbox<ToWorker> to_worker_;
};

}  // namespace penstock::transfer
