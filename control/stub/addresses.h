// SPDX-License-Identifier: Apache-2.0
// The addresses of one service, and which dispatcher leads there as far as this process knows. One
// dispatcher leads at a time; a standby does not listen until it leads. See
// docs/decisions/0017-several-addresses.md.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "control/protocol/lives.h"
#include "control/sync/mutex.h"

namespace penstock::control {

// Shared by all calls and streams of a stub. Any thread may call any method.
class Addresses {
 public:
  // `all`: "host:port" each. REQUIRES: not empty.
  explicit Addresses(std::vector<std::string> all);

  const std::vector<std::string>& all() const { return all_; }
  const std::string& text() const { return text_; }  // "a:5050,b:5050"
  // The place in all() of the address that answered last; 0 before any has answered.
  size_t first() const;

  // Notes a dispatcher's life of which this process has heard. Returns OK if it is the newest one
  // of its journal. Otherwise that dispatcher has been replaced, and the result is Unavailable with
  // both terms. With one address always OK: nobody can replace that dispatcher at another address,
  // and the dispatcher says itself that its journal is an older copy.
  absl::Status Accept(const Life& life);

 private:
  friend class AddressRound;
  void Answered(size_t at);

  const std::vector<std::string> all_;
  const std::string text_;
  mutable Mutex mu_;
  size_t first_ GUARDED_BY(mu_) = 0;
  Life newest_ GUARDED_BY(mu_);  // id 0: none yet
};

// One caller's way through the addresses: first the one that answered last, then the others in
// order. Owned by the caller, and not thread-safe.
class AddressRound {
 public:
  // `addresses` must outlive the round.
  explicit AddressRound(Addresses& addresses) : addresses_(addresses) { Begin(); }

  const std::string& address() const { return addresses_.all()[at_]; }  // to try now
  // The leader answered at address(). All callers try it first from now on.
  void Answered();
  // The try at address() failed. Moves on to the next address if nobody leads there. Returns true
  // if the caller should pause before the next try: all addresses have been tried, and the next
  // round begins; or somebody is there, but cannot answer yet, or cannot prove its name.
  // `in_a_hurry`: the try had little time, so an earlier reason at that address says more.
  bool Failed(const absl::Status& why, bool in_a_hurry = false);
  // Returns why no address answered: the last reason, or with several addresses the last reason at
  // each of them, "a:5050: connection refused; b:5050: ...".
  std::string Reasons() const;

 private:
  void Begin();

  Addresses& addresses_;
  size_t at_ = 0;                     // in all()
  size_t tried_ = 0;                  // in this round
  std::vector<std::string> reasons_;  // by place in all(); empty: not tried yet
};

}  // namespace penstock::control
