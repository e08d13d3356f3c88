// SPDX-License-Identifier: Apache-2.0
// Which answers of a server end a request, which let it be tried again, and when.
#pragma once

#include <string>

#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace penstock::remote {

// A reply that is not what was asked for.
struct Refusal {
  int code = 0;              // 404
  std::string reason;        // "Not Found", if the server says so
  std::string content_type;  // "application/xml"
  std::string body;          // its beginning
};

// Whether the same request may succeed later: overload, a server that restarts,
// a client that was slow.
bool MayPass(const Refusal& refusal);

// "the server answers 503 Slow Down: …" with the server's words: of S3's <Error>
// its code and message, of plain text its beginning.
std::string WordsOf(const Refusal& refusal);
// The error that a reader of `name` gets.
absl::Status ErrorOf(const std::string& name, const Refusal& refusal);

// Waits between tries: each at most twice as long as the one before, drawn so
// that clients that failed together do not come back together.
class Backoff {
 public:
  // How long to wait now; never shorter than what the server asked for, as long
  // as that is no longer than kLongestWait.
  absl::Duration Next(absl::Duration asked_for = absl::ZeroDuration());
  // Something came: begin anew.
  void Reset() { tries_ = 0; }

  static constexpr absl::Duration kFirstWait = absl::Milliseconds(100);
  static constexpr absl::Duration kLongestWait = absl::Seconds(10);

 private:
  absl::InsecureBitGen random_;
  int tries_ = 0;
};

}  // namespace penstock::remote
