// SPDX-License-Identifier: Apache-2.0
// Looks up hosts on a thread of its own, since a lookup may take seconds.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "dataplane/transfer/tcp/socket.h"

namespace penstock::transfer::tcp {

class Resolver {
 public:
  using Done = std::function<void(absl::StatusOr<std::vector<Endpoint>>)>;

  ~Resolver();  // waits for the running lookup; drops all other lookups

  // Calls `done` once: before LookUp() returns if the host is given as a number, else on the
  // resolver's thread. If that thread cannot be started, `done` gets ResourceExhausted before
  // LookUp() returns. Any thread.
  void LookUp(HostAndPort where, Done done);

 private:
  struct Question {
    HostAndPort where;
    Done done;
  };
  void Run();

  Mutex mu_;
  Condition asked_;
  std::deque<Question> questions_ GUARDED_BY(mu_);
  bool stopping_ GUARDED_BY(mu_) = false;
  Thread thread_ GUARDED_BY(mu_);  // started for the first name
};

}  // namespace penstock::transfer::tcp
