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

// Returns whether the same request may succeed later: after overload, a restart of the server, or a
// slow client.
bool MayPass(const Refusal& refusal);

// Returns "the server answered 503 Slow Down: …" with the server's text: code and message of S3's
// <Error>, or the beginning of a plain text.
std::string WordsOf(const Refusal& refusal);
// Returns the error that a reader of `name` gets.
absl::Status ErrorOf(const std::string& name, const Refusal& refusal);

// Waits between tries. Their bound doubles with each try; a wait is 50 to 100 % of its bound, drawn
// at random so that clients that failed together do not retry together.
class Backoff {
 public:
  // Returns how long to wait now: at least as long as the server asked for, up to kLongestWait.
  absl::Duration Next(absl::Duration asked_for = absl::ZeroDuration());
  // Begins again with kFirstWait, because data has arrived.
  void Reset() { tries_ = 0; }

  static constexpr absl::Duration kFirstWait = absl::Milliseconds(100);
  static constexpr absl::Duration kLongestWait = absl::Seconds(10);

 private:
  absl::InsecureBitGen random_;
  int tries_ = 0;
};

}  // namespace penstock::remote
