// SPDX-License-Identifier: Apache-2.0
// One Python process, which runs functions and generators one request at a time.
//
// It starts with child.py in a memfd and one end of a SOCK_SEQPACKET pair. A request is four u64
// (the kind, then its numbers). A reply is three (status, flags, bytes); the status is 0 for
// leaves, a canonical code for an error's text, or one of child.py's codes from 100 on. Leaves and
// texts are in two shared segments, one for each direction. This side makes the segments and
// replaces them with larger ones; the process reports how much room it needs. The arguments'
// segment is also replaced if a function keeps an array that is in it, so that the array does not
// change.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/expr/python_host.h"
#include "dataplane/memory/descriptor.h"
#include "dataplane/memory/shared_segment.h"
#include "penstock/register.h"
#include "penstock/tensor.h"

namespace penstock::python_host {

// How to start a process.
struct Command {
  std::string interpreter = "python3";  // looked up as a shell does
  std::vector<std::string> path;        // module folders, in addition to the interpreter's own
};

// One thread at a time, except Interrupt(). If the process died during a call (ended()), the call's
// result is meaningless.
class Process {
 public:
  // Starts a process without waiting for it. NotFound if there is no such interpreter.
  static absl::StatusOr<std::unique_ptr<Process>> Start(const Command& command);
  ~Process();  // ends the process

  // From now on, if the process does not answer a call within two seconds after `stop` is
  // requested, the process is killed and the call returns Cancelled.
  void Until(std::stop_token stop) { stop_ = std::move(stop); }
  // True if the process died between calls.
  bool HasGone() const;

  // Waits until the process can be used. FailedPrecondition if it ends first, for example because
  // NumPy is missing.
  absl::Status AwaitReady();
  // The same as PythonHost::Call().
  absl::Status Call(const PythonFunction& function, absl::Span<const Tensor> inputs,
                    absl::Span<const TensorSpec> outputs, ElementOutputs& out);
  // Begins a generator under the number `session`.
  absl::Status Open(uint64_t session, const PythonFunction& generator);
  // Gets the generator's next element, after skipping `passed_over` elements; false at its end.
  absl::StatusOr<bool> Next(uint64_t session, uint64_t passed_over, const PythonFunction& generator,
                            absl::Span<const TensorSpec> outputs, ElementOutputs& out);
  void Close(uint64_t session);

  // Ends the waiting call, if there is one. Any thread.
  void Interrupt();
  bool ended() const { return ended_; }
  // Returns how the process ended, as in "was killed by signal 9 (Killed)". REQUIRES: ended(); call
  // it once.
  std::string HowItEnded();

 private:
  struct Reply {
    uint64_t status = 0;
    uint64_t flags = 0;
    uint64_t bytes = 0;
  };

  Process(pid_t pid, Descriptor socket, Descriptor stop_event);
  absl::Status Define(const PythonFunction& function);
  // Makes room for `bytes` bytes of arguments, in memory that no function keeps.
  absl::Status MakeRoom(size_t bytes);
  // Replaces a segment with one of `bytes` bytes.
  absl::Status Renew(SharedSegment& segment, uint64_t op, size_t bytes);
  absl::StatusOr<Reply> Ask(uint64_t op, uint64_t a = 0, uint64_t b = 0);
  absl::Status Send(uint64_t op, uint64_t a, uint64_t b, int descriptor = -1);
  absl::StatusOr<Reply> Receive();
  // Waits until the socket can be read. False if the process does not answer in time after a stop.
  bool AwaitReply();
  absl::Status Ended();
  // Kills and reaps the process. Returns waitpid's status; nullopt if it was reaped elsewhere.
  std::optional<int> Reap();
  // Passes the reply's leaves to `out`, or returns the error of the reply or of the request.
  absl::Status Take(const absl::StatusOr<Reply>& reply, const PythonFunction& function,
                    absl::Span<const TensorSpec> outputs, ElementOutputs& out) const;
  absl::Status ErrorOf(const Reply& reply, const PythonFunction& function) const;

  const pid_t pid_;
  Descriptor socket_;
  Descriptor stop_event_;  // an eventfd, set when a stop is requested during a call
  SharedSegment arguments_;
  SharedSegment results_;
  std::set<uint64_t> defined_;  // keys of functions
  bool kept_ = false;           // a function may keep arrays in arguments_
  std::stop_token stop_;
  bool ended_ = false;
  bool reaped_ = false;
};

}  // namespace penstock::python_host
