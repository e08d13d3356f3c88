// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "include/status_macros.h"

namespace penstock::client {

// Forwards a link's events, with the worker's id added.
class Reader::Events final : public transfer::ReceiveEvents {
 public:
  Events(WorkerId worker, ReaderEvents& to) : worker_(worker), to_(to) {}
  void OnOpen() override { to_.OnLinkOpen(worker_); }
  void OnElements(absl::Span<Element> elements) override { to_.OnElements(worker_, elements); }
  void OnError(const Identity& identity, const absl::Status& error) override {
    to_.OnElementError(worker_, identity, error);
  }
  void OnRecalled(transfer::Credits credits) override { to_.OnRecalled(worker_, credits.count); }
  void OnClosed(const absl::Status& reason) override { to_.OnLinkClosed(worker_, reason); }

 private:
  const WorkerId worker_;
  ReaderEvents& to_;
};

absl::StatusOr<transfer::TransportSelection> Reader::Dial(
    int64_t number, const transfer::TransportPreference& preference,
    const std::map<std::string, std::string>& given_up, transfer::DialOptions dial) {
  std::vector<transfer::TransportOffer> offers;
  for (const control::TransferOffer& offer : worker_.offers) {
    const auto why = given_up.find(offer.protocol);
    offers.push_back({offer.protocol, offer.address, offer.compatibility, offer.preference,
                      why == given_up.end() ? "" : why->second});
  }
  ASSIGN_OR_RETURN(transfer::TransportSelection selection,
                   transfer::Negotiate(preference, offers, worker_.address));
  ASSIGN_OR_RETURN(std::unique_ptr<transfer::ReceiveLink> link,
                   selection.transport->Dial(selection.offer.address, std::move(dial),
                                             std::make_shared<Events>(worker_.worker, events_)));
  MutexLock lock(mu_);
  number_ = number;
  link_ = std::move(link);
  return selection;
}

void Reader::Close() {
  std::unique_ptr<transfer::ReceiveLink> link;
  {
    MutexLock lock(mu_);
    link = std::move(link_);
  }
}

void Reader::Grant(int64_t link, int64_t count) {
  MutexLock lock(mu_);
  if (link_ != nullptr && number_ == link) link_->Grant({count});
}

void Reader::Recall() {
  MutexLock lock(mu_);
  if (link_ != nullptr) link_->Recall();
}

}  // namespace penstock::client
