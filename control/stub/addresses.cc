// SPDX-License-Identifier: Apache-2.0
#include "control/stub/addresses.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::control {
namespace {

// Returns whether the status may mean that no leader is at the address. Aborted comes from a
// dispatcher that is up, but cannot answer yet. A certificate for another name is a mistake in the
// set-up, which another address would only hide; gRPC reports it as Unavailable with this text.
bool MayLeadElsewhere(const absl::Status& status) {
  return !absl::IsAborted(status) &&
         !absl::StrContains(status.message(), "is not in peer certificate");
}

}  // namespace

Addresses::Addresses(std::vector<std::string> all)
    : all_(std::move(all)), text_(absl::StrJoin(all_, ",")) {}

size_t Addresses::first() const {
  MutexLock lock(mu_);
  return first_;
}

absl::Status Addresses::Accept(const Life& life) {
  if (all_.size() == 1 || life.id == 0) return absl::OkStatus();
  MutexLock lock(mu_);
  if (life.journal != newest_.journal || newest_.term <= life.term) {
    newest_ = life;
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("the dispatcher is in term ", life.term.value(),
                                             ", but another one leads since term ",
                                             newest_.term.value()));
}

void Addresses::Answered(size_t at) {
  MutexLock lock(mu_);
  first_ = at;
}

void AddressRound::Begin() {
  at_ = addresses_.first();
  tried_ = 0;
  reasons_.resize(addresses_.all().size());
}

void AddressRound::Answered() {
  addresses_.Answered(at_);
  tried_ = 0;
  reasons_.assign(reasons_.size(), "");
}

bool AddressRound::Failed(const absl::Status& why, bool in_a_hurry) {
  if (!in_a_hurry || reasons_[at_].empty()) reasons_[at_] = std::string(why.message());
  if (!MayLeadElsewhere(why)) return true;
  if (++tried_ == reasons_.size()) {
    Begin();
    return true;
  }
  at_ = (at_ + 1) % reasons_.size();
  return false;
}

std::string AddressRound::Reasons() const {
  if (reasons_.size() == 1) return reasons_.front();
  std::vector<std::string> each;
  for (size_t i = 0; i < reasons_.size(); ++i) {
    if (!reasons_[i].empty()) each.push_back(absl::StrCat(addresses_.all()[i], ": ", reasons_[i]));
  }
  return absl::StrJoin(each, "; ");
}

}  // namespace penstock::control
