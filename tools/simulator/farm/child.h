// SPDX-License-Identifier: Apache-2.0
// A function in a process of its own, so that a crash or a hang ends only that process.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace penstock::simulator {

// How a child ended.
struct ChildEnd {
  std::optional<std::string> text;  // what the function returned
  std::string failure;  // else: "crashed by SIGNAL: …" or "hangs: …", with its last words
};

// Used on one thread, by a process that has no other: a child is a copy of its parent. A child dies
// with its parent.
class Child {
 public:
  // Starts a child that calls `work` once. It has `limit` of processor time, so that a busy machine
  // makes no failures, and ten times as much of real time.
  static absl::StatusOr<std::unique_ptr<Child>> Start(absl::FunctionRef<std::string()> work,
                                                      absl::Duration limit);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // kills it, if it still runs

  int descriptor() const { return descriptor_; }     // can be read when there is something to do
  absl::Time deadline() const { return deadline_; }  // call Poll() then at the latest
  // Reads what the child has sent. Returns its end if it has ended, or if its time is over, and
  // nullopt otherwise. Does not wait. REQUIRES: has not returned the end.
  std::optional<ChildEnd> Poll();

 private:
  Child(pid_t process, int descriptor, absl::Duration limit);
  // Waits for the end of the process.
  ChildEnd End(bool hangs);

  pid_t process_;  // 0: it has ended
  const int descriptor_;
  const absl::Duration limit_;
  const absl::Time last_deadline_;
  absl::Time deadline_;
  std::string got_;  // what it wrote to stderr, and after that what the function returned
};

// Waits until one of `descriptors` can be read, at the latest until `deadline`.
void AwaitReadable(const std::vector<int>& descriptors, absl::Time deadline);

// Starts a child, and waits for its end.
ChildEnd RunInChild(absl::FunctionRef<std::string()> work, absl::Duration limit);

}  // namespace penstock::simulator
