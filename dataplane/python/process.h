// SPDX-License-Identifier: Apache-2.0
// One Python process, which runs functions and generators one request at a time.
//
// It is started with child.py in a memfd and one end of a SOCK_SEQPACKET pair. A request is four
// u64 (what, and its numbers), a reply three (0 for leaves, a canonical code for an error's text,
// or what child.py names from 100 on; flags; bytes). Leaves and texts lie in two shared segments,
// one for each direction, which this side makes and replaces by larger ones; the process says what
// room it needs. An array of arguments that a function keeps stays what it is: the segment is
// replaced then too.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "control/env/files.h"
#include "dataplane/dataset/python_host.h"
#include "dataplane/memory/descriptor.h"
#include "dataplane/memory/shared_segment.h"
#include "penstock/register.h"
#include "penstock/tensor.h"

namespace penstock::python_host {

// Who waits for a process looks this often whether the call is cancelled.
inline constexpr absl::Duration kLookForCancelled = absl::Milliseconds(100);

// How to start one.
struct Command {
  std::string interpreter = "python3";  // looked for as a shell does
  std::vector<std::string> path;        // folders of modules, besides the interpreter's own
};

// All but Interrupt() one thread at a time. What a call returns when the process has died under it
// is not to be looked at: ended() says so.
class Process {
 public:
  // Starts it without waiting for it. NotFound if there is no such interpreter.
  static absl::StatusOr<std::unique_ptr<Process>> Start(const Command& command);
  ~Process();  // ends it

  // From here on a call ends with Cancelled, and the process with it, if it does not answer within
  // two seconds of `cancelled` being set. nullptr: never.
  void Until(CancelFlag cancelled) { cancelled_ = cancelled; }
  // Whether it has died while nobody called.
  bool HasGone() const;

  // Waits until it can be used; FailedPrecondition if it ended before, as one without NumPy.
  absl::Status AwaitReady();
  // As PythonHost::Call.
  absl::Status Call(const PythonFunction& function, absl::Span<const Tensor> inputs,
                    absl::Span<const TensorSpec> outputs, ElementOutputs& out);
  // Begins a generator under the number `session`.
  absl::Status Open(uint64_t session, const PythonFunction& generator);
  // Its next element, behind `passed_over` others; false at its end.
  absl::StatusOr<bool> Next(uint64_t session, uint64_t passed_over, const PythonFunction& generator,
                            absl::Span<const TensorSpec> outputs, ElementOutputs& out);
  void Close(uint64_t session);

  // Ends whatever call waits. Any thread.
  void Interrupt();
  bool ended() const { return ended_; }
  // "was killed by signal 9 (Killed)". REQUIRES: ended(); once.
  std::string HowItEnded();

 private:
  struct Reply {
    uint64_t status = 0;
    uint64_t flags = 0;
    uint64_t bytes = 0;
  };

  Process(pid_t pid, Descriptor socket);
  absl::Status Define(const PythonFunction& function);
  // Has room for so many bytes of arguments, in memory that nobody keeps.
  absl::Status MakeRoom(size_t bytes);
  // Replaces a segment by one of so many bytes.
  absl::Status Renew(SharedSegment& segment, uint64_t op, size_t bytes);
  absl::StatusOr<Reply> Ask(uint64_t op, uint64_t a = 0, uint64_t b = 0);
  absl::Status Send(uint64_t op, uint64_t a, uint64_t b, int descriptor = -1);
  absl::StatusOr<Reply> Receive();
  bool IsCancelled() const;
  absl::Status Ended();
  // Kills and reaps it; the status that waitpid gives, or nothing if another has reaped it.
  std::optional<int> Reap();
  // The reply's leaves or error, or the error of the request.
  absl::Status Take(const absl::StatusOr<Reply>& reply, const PythonFunction& function,
                    absl::Span<const TensorSpec> outputs, ElementOutputs& out) const;
  absl::Status ErrorOf(const Reply& reply, const PythonFunction& function) const;

  const pid_t pid_;
  Descriptor socket_;
  SharedSegment arguments_;
  SharedSegment results_;
  std::set<uint64_t> defined_;  // keys of functions
  bool kept_ = false;           // something keeps arrays in arguments_
  CancelFlag cancelled_ = nullptr;
  bool ended_ = false;
  bool reaped_ = false;
};

}  // namespace penstock::python_host
