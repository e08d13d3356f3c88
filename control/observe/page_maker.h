// SPDX-License-Identifier: Apache-2.0
// Makes one status page, on a thread of its own, so that a page that takes long to make delays
// neither other pages nor the thread that serves the clients.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"

namespace penstock {

class PageMaker {
 public:
  using Text = std::shared_ptr<const std::string>;
  using Done = std::function<void(Text)>;  // must not block

  explicit PageMaker(std::function<std::string(const std::string& viewer)> page)
      : page_(std::move(page)) {}
  ~PageMaker();  // waits for a text that is being made; calls of Request that wait get none
  // Starts the thread. ResourceExhausted if the process cannot get one.
  absl::Status Start(const std::string& path);

  // Calls `done`, on the page's thread, with a text for `viewer` that was begun after this call.
  // All calls with the same viewer that wait while another text is being made get the same text. A
  // call may be forgotten once `asker` has expired. Any thread; never waits.
  void Request(std::string viewer, std::weak_ptr<const void> asker, Done done);

 private:
  struct Waiter {
    std::string viewer;
    std::weak_ptr<const void> asker;
    Done done;
  };

  void Run();
  // Takes the calls that wait with the viewer of the oldest one.
  std::vector<Waiter> TakeOldest() REQUIRES(mu_);

  const std::function<std::string(const std::string& viewer)> page_;
  Thread thread_;
  Mutex mu_;
  Condition changed_;
  bool stopping_ GUARDED_BY(mu_) = false;
  std::vector<Waiter> waiting_ GUARDED_BY(mu_);
};

}  // namespace penstock
