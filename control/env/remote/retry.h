// SPDX-License-Identifier: Apache-2.0
// Decides which replies of a server end a request, which allow a retry, and when to retry.
#pragma once

#include <string>

#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace penstock::remote {

// A reply that is not the requested content.
struct Refusal {
  int code = 0;              // such as 404
  std::string reason;        // "Not Found", if the server sends it
  std::string content_type;  // such as "application/xml"
  std::string body;          // its beginning
};

// Returns whether the same request may succeed later, because the server was overloaded or
// restarting, or the client was too slow.
bool MayPass(const Refusal& refusal);

// Returns a text such as "the server answered 503 Slow Down: …". It ends with the server's text:
// the code and message of S3's <Error>, or the beginning of a body in plain text.
std::string WordsOf(const Refusal& refusal);
// Returns the error for a caller that reads the file `name`.
absl::Status ErrorOf(const std::string& name, const Refusal& refusal);

// Computes the waits between tries. The bound doubles with each try. A wait is 50 to 100 % of the
// bound, drawn at random so that clients that failed together do not retry together.
class Backoff {
 public:
  // Returns the time to wait before the next try. It is at least `asked_for`, the time that the
  // server asked for, but at most kLongestWait.
  absl::Duration Next(absl::Duration asked_for = absl::ZeroDuration());
  // Called when data has arrived: the next wait begins at kFirstWait again.
  void Reset() { tries_ = 0; }

  static constexpr absl::Duration kFirstWait = absl::Milliseconds(100);
  static constexpr absl::Duration kLongestWait = absl::Seconds(10);

 private:
  absl::InsecureBitGen random_;
  int tries_ = 0;
};

}  // namespace penstock::remote
