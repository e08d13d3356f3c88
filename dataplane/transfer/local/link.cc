// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/local/link.h"

#include <utility>

#include "control/sync/mutex.h"
#include "dataplane/element/block.h"

namespace penstock::transfer::local {
namespace {

class LocalSendLink : public SendLink {
 public:
  explicit LocalSendLink(std::shared_ptr<LocalLink> link) : link_(std::move(link)) {}
  ~LocalSendLink() override {
    link_->CloseByWorker(absl::CancelledError("the worker let go of the link"));
  }
  const Hello& hello() const override { return link_->hello(); }
  int64_t credits() const override { return link_->credits(); }
  absl::Status Send(Sent&& sent) override { return link_->Send(std::move(sent)); }
  void Flush() override {}  // nothing waits here
  void Close(const absl::Status& reason) override { link_->CloseByWorker(reason); }

 private:
  std::shared_ptr<LocalLink> link_;
};

}  // namespace

LocalLink::LocalLink(DialOptions options, std::shared_ptr<ReceiveEvents> receiver)
    : options_(std::move(options)),
      receiver_(std::move(receiver)),
      admitted_(options_.spec),
      to_client_([this](ToClient& event) { Deliver(event); }),
      to_worker_([this](ToWorker& event) { Deliver(event); }) {}

void LocalLink::Open(const Listener::Accept& accept, std::function<void(LocalLink*)> ended) {
  ended_ = std::move(ended);
  to_client_.Post({.kind = ToClient::kOpen});
  absl::StatusOr<std::shared_ptr<SendEvents>> sender =
      accept(options_.hello, std::make_shared<LocalSendLink>(shared_from_this()));
  if (sender.ok()) {
    sender_ = *std::move(sender);
    to_worker_.Start();
    to_client_.Start();
    return;
  }
  NeverOpened(sender.status());
  NotifyEnded();
}

void LocalLink::NeverOpened(const absl::Status& reason) {
  closing_ = true;
  over_ = true;
  to_worker_.Close();
  to_client_.Close();  // events before the refusal are dropped
  std::exchange(receiver_, nullptr)->OnClosed(reason);
}

absl::Status LocalLink::Send(Sent&& sent) {
  if (closing_) return absl::UnavailableError("the link is closed");
  int64_t left = credits_.load(std::memory_order_relaxed);
  do {
    if (left <= 0) return absl::FailedPreconditionError("no credit on this link");
  } while (!credits_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel));
  ToClient event{.kind = ToClient::kSent, .sent = std::move(sent)};
  if (to_client_.Post(std::move(event))) return absl::OkStatus();
  sent = std::move(event.sent);
  return absl::UnavailableError("the link is closed");
}

void LocalLink::CloseByWorker(const absl::Status& reason) {
  if (closing_.exchange(true)) return;
  to_client_.Post({.kind = ToClient::kClosed, .reason = reason});
}

void LocalLink::WaitEnded() {
  MutexLock lock(mu_);
  all_notified_.Wait(lock, [&]() REQUIRES(mu_) { return ended_notified_; });
}

void LocalLink::Grant(Credits credits) {
  if (credits.count <= 0) return;
  credits_.fetch_add(credits.count, std::memory_order_acq_rel);
  to_worker_.Post({.kind = ToWorker::kCredits, .count = credits.count});
}

void LocalLink::Recall() {
  to_client_.Post({.kind = ToClient::kRecalled, .count = credits_.exchange(0)});
}

void LocalLink::CloseByClient() {
  closing_ = true;
  End(absl::OkStatus());
}

void LocalLink::Deliver(ToClient& event) {
  std::shared_ptr<ReceiveEvents> receiver = receiver_;  // End() inside an event clears receiver_
  switch (event.kind) {
    case ToClient::kOpen:
      return receiver->OnOpen();
    case ToClient::kSent:
      return Receive(event.sent);
    case ToClient::kRecalled:
      return receiver->OnRecalled({event.count});
    case ToClient::kClosed:
      End(event.reason);  // before the client's own Close() can report OK
      return receiver->OnClosed(event.reason);
  }
}

void LocalLink::Receive(Sent& sent) {
  std::shared_ptr<ReceiveEvents> receiver = receiver_;
  absl::Status valid = sent.error.ok() ? Check(sent.element) : absl::OkStatus();
  if (!valid.ok()) {
    closing_ = true;
    std::vector<Sent> unconfirmed;
    unconfirmed.push_back(std::move(sent));
    End(valid, std::move(unconfirmed));
    return receiver->OnClosed(valid);
  }
  const int64_t bytes = sent.element ? static_cast<int64_t>(sent.element.block().size()) : 0;
  unreported_ = Acknowledged{sent.identity, bytes};
  if (sent.error.ok()) {
    receiver->OnElements(absl::MakeSpan(&sent.element, 1));
  } else {
    receiver->OnError(sent.identity, sent.error);
  }
  ReportReceived();
}

void LocalLink::ReportReceived() {
  if (const std::optional<Acknowledged> received = std::exchange(unreported_, std::nullopt))
    to_worker_.Post({.kind = ToWorker::kReceived, .received = *received});
}

absl::Status LocalLink::Check(const Element& element) {
  absl::Span<const std::byte> block = element.block();
  if (static_cast<int64_t>(block.size()) > options_.max_element_bytes) {
    return absl::DataLossError(
        absl::StrCat("an element of ", block.size(),
                     " bytes is above max_element_bytes = ", options_.max_element_bytes));
  }
  // This process wrote the element, so only its spec is checked. Consecutive elements usually share
  // one spec.
  if (element.spec() == admitted_) return absl::OkStatus();
  if (absl::Status fits = options_.spec.Admits(element.spec()); !fits.ok()) {
    return absl::DataLossError(fits.message());
  }
  admitted_ = element.spec();
  return absl::OkStatus();
}

void LocalLink::End(const absl::Status& reason, std::vector<Sent> unconfirmed) {
  if (over_.exchange(true)) {
    to_client_.Close();  // still waits for a running event
    return;
  }
  Fifo<ToClient> rest = to_client_.Close();
  while (!rest.empty()) {
    ToClient event = rest.Pop();
    if (event.kind == ToClient::kSent) unconfirmed.push_back(std::move(event.sent));
  }
  receiver_.reset();
  ReportReceived();  // in case OnElements closed the link
  to_worker_.Post(
      {.kind = ToWorker::kClosed, .reason = reason, .unconfirmed = std::move(unconfirmed)});
}

void LocalLink::Deliver(ToWorker& event) {
  switch (event.kind) {
    case ToWorker::kCredits:
      return sender_->OnCredits({event.count});
    case ToWorker::kReceived:
      return sender_->OnReceived(absl::MakeConstSpan(&event.received, 1));
    case ToWorker::kClosed:
      break;
  }
  std::shared_ptr<LocalLink> self = shared_from_this();  // the sender may hold the last handle
  std::exchange(sender_, nullptr)->OnClosed(event.reason, std::move(event.unconfirmed));
  to_worker_.Close();
  NotifyEnded();
}

void LocalLink::NotifyEnded() {
  ended_(this);
  {
    MutexLock lock(mu_);
    ended_notified_ = true;
  }
  all_notified_.NotifyAll();
}

}  // namespace penstock::transfer::local
