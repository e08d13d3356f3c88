// SPDX-License-Identifier: Apache-2.0
// A Python process that runs functions and generators, one request at a time.
//
// The process starts with child.py in a memfd and with one end of a SOCK_SEQPACKET pair. A request
// is four u64: the kind, then the kind's arguments. A reply is three u64: status, flags and bytes.
// The status is 0 if the bytes are leaves, a canonical status code if they are an error's text, or
// one of child.py's codes from 100 on. Leaves and texts are in two shared segments, one for each
// direction. The C++ side makes the segments, and replaces one with a larger segment when needed;
// the process reports the size that it needs for a result. The segment for arguments is also
// replaced if a function keeps an array that is in the segment, so that the array does not change.
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
#include "control/env/descriptor.h"
#include "dataplane/dataset/expr/python_host.h"
#include "dataplane/memory/shared_segment.h"
#include "penstock/register.h"
#include "penstock/tensor.h"

namespace penstock::python_host {

// How to start a process.
struct Command {
  std::string interpreter = "python3";  // looked up in PATH, as by a shell
  std::vector<std::string> path;        // module folders, in addition to the interpreter's own
  // The variables of this process that the started process gets, by name, in addition to those that
  // every Python process needs (environment.h). nullopt: all variables.
  std::optional<std::vector<std::string>> variables = std::nullopt;
};

// One thread at a time, except for Interrupt(). If the process died during a call (see ended()),
// the call's result is meaningless.
class Process {
 public:
  // Starts a process without waiting for it. NotFound if there is no such interpreter.
  static absl::StatusOr<std::unique_ptr<Process>> Start(const Command& command);
  ~Process();  // ends the process

  // From now on, if the process does not answer a call within two seconds after `stop` is
  // requested, the process is killed and the call returns Cancelled.
  void Until(std::stop_token stop) { stop_ = std::move(stop); }
  // Returns true if the process died between calls.
  bool HasGone() const;

  // Waits until the process can be used. FailedPrecondition if the process ends first, for example
  // because NumPy is missing.
  absl::Status AwaitReady();
  // Same as PythonHost::Call().
  absl::Status Call(const PythonFunction& function, absl::Span<const Tensor> inputs,
                    absl::Span<const TensorSpec> outputs, ElementOutputs& out);
  // Begins a generator under the number `session`.
  absl::Status Open(uint64_t session, const PythonFunction& generator);
  // Skips `passed_over` elements of the generator, and gets the next element; false at the
  // generator's end.
  absl::StatusOr<bool> Next(uint64_t session, uint64_t passed_over, const PythonFunction& generator,
                            absl::Span<const TensorSpec> outputs, ElementOutputs& out);
  void Close(uint64_t session);

  // Ends the call that is waiting, if there is one. Any thread.
  void Interrupt();
  bool ended() const { return ended_; }
  // Returns a description of the process's end, for example "was killed by signal 9 (Killed)".
  // REQUIRES: ended(), and this method was not called before.
  std::string HowItEnded();

 private:
  struct Reply {
    uint64_t status = 0;
    uint64_t flags = 0;
    uint64_t bytes = 0;
  };

  Process(pid_t pid, Descriptor socket, Descriptor stop_event);
  absl::Status Define(const PythonFunction& function);
  // Makes sure that there are `bytes` bytes of memory for arguments, none of it kept by a function.
  absl::Status MakeRoom(size_t bytes);
  // Replaces a segment with one of `bytes` bytes.
  absl::Status Renew(SharedSegment& segment, uint64_t op, size_t bytes);
  absl::StatusOr<Reply> Ask(uint64_t op, uint64_t a = 0, uint64_t b = 0);
  absl::Status Send(uint64_t op, uint64_t a, uint64_t b, int descriptor = -1);
  absl::StatusOr<Reply> Receive();
  // Waits until the socket can be read. Returns false if a stop is requested and the process then
  // does not answer in time.
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
  bool kept_ = false;           // a function may have kept arrays in arguments_
  std::stop_token stop_;
  bool ended_ = false;
  bool reaped_ = false;
};

}  // namespace penstock::python_host
