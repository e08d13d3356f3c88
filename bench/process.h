// SPDX-License-Identifier: Apache-2.0
// A child process of a side. The two exchange lines over its standard input and output.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace penstock::bench {

class Process {
 public:
  enum class Ends : uint8_t { kWithInput, kBySignal };  // how it is asked to end

  // Starts `argv`, where the program "" means this one. Its stderr goes to the file `log`. It dies
  // when this process does.
  static absl::StatusOr<std::unique_ptr<Process>> Start(std::vector<std::string> argv, Ends ends,
                                                        std::string log);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  // Asks it to end, and kills it after 5 s.
  ~Process();

  pid_t pid() const { return pid_; }
  absl::Status Write(const std::string& line);
  // Returns the next line of its output, without the break. Unavailable, with the end of its log,
  // if it ended; DeadlineExceeded after `bound`; Cancelled when interrupted (interrupt.h).
  absl::StatusOr<std::string> ReadLine(absl::Duration bound);
  // Ends its input, waits until it ends, and returns the rest of its output. Unavailable, with the
  // end of its log, if it failed. An interrupt does not stop the wait. Must be the last call.
  absl::StatusOr<std::string> Finish();

 private:
  Process(pid_t pid, Ends ends, int in, int out, std::string log)
      : pid_(pid), ends_(ends), in_(in), out_(out), log_(std::move(log)) {}
  std::string EndOfLog() const;
  absl::Status Ended() const;

  pid_t pid_;  // 0: it has ended
  Ends ends_;
  int in_, out_;  // in_ < 0: closed
  std::string log_;
  std::string unread_;
};

}  // namespace penstock::bench
