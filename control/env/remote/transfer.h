// SPDX-License-Identifier: Apache-2.0
// One GET with all its tries. Used only by the client's thread.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "control/env/remote/guard.h"
#include "control/env/remote/http_client.h"
#include "control/env/remote/retry.h"
#include "control/observe/metrics.h"
#include "control/sync/clock.h"

namespace penstock::remote {

using Clock = SteadyClock;

class Transfer {
 public:
  // `config` and `buffers` must outlive this object.
  Transfer(GetRequest request, const FilesConfig& config, Buffers& buffers);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Prepares `easy` for the next try, which continues where the last try ended.
  void Begin(CURL* easy);
  // Handles the end of a try. The handle passed to Begin() is no longer used. Returns nullopt if
  // the request must be tried again at due().
  std::optional<absl::StatusOr<GetReply>> End(CURLcode code);

  Clock::time_point due() const { return due_; }
  // Returns the time at which the current try must be ended, unless a byte arrives before then.
  Clock::time_point stalls_at() const;
  // Returns the reason for which the last try failed. Empty if no try has failed, or if the request
  // received a byte less than kComplainAfter ago.
  std::string Complaint() const;

 private:
  // The kind of a reply's body, according to the reply's head.
  enum class Body { kUnknown, kWanted, kRefused };

  static size_t OnHeader(char* line, size_t, size_t size, void* self);
  static size_t OnBody(char* bytes, size_t, size_t size, void* self);
  // Examines the head of a reply. Sets error_ if the reply is unusable or belongs to a different
  // version of the file.
  Body Examine();
  Body ExamineWhole(int64_t length);
  // Compares `told` with version_, and adds to version_ the parts that only `told` has. Sets error_
  // and returns false if the versions differ.
  bool IsSameVersion(const Version& told);
  bool Keep(const char* bytes, size_t size);
  std::string Header(const char* name) const;  // of the last reply; empty: none
  curl_slist* Headers(const Authorization& authorization) const;

  absl::StatusOr<GetReply> Finished();
  // Returns the outcome for a reply after which a retry would not help.
  absl::StatusOr<GetReply> Refused();
  std::optional<absl::StatusOr<GetReply>> TryAgain(const std::string& why,
                                                   absl::Duration asked_for = {});
  bool IsComplete() const;
  absl::Status Changed(absl::string_view how) const;

  struct Counters {
    Counter &requests, &retries, &bytes;
  };
  static Counters& CountersOf(const std::string& name);

  const GetRequest request_;
  const FilesConfig& config_;
  Buffers& buffers_;
  Counters& counters_;
  Version version_;  // of the bytes received so far

  Buffers::Buffer buffer_;
  size_t capacity_ = 0;
  size_t got_ = 0;  // bytes in buffer_
  bool is_whole_ = false;

  Backoff backoff_;
  int tries_ = 0;
  Clock::time_point due_;        // of the next try
  Clock::time_point began_;      // start of the request, or time of the last byte
  Clock::time_point try_began_;  // start of the try, or time of the last byte
  std::string why_;              // the reason for which the last try failed

  // --- The try under way
  Guard guard_;
  CURL* easy_ = nullptr;
  curl_slist* headers_ = nullptr;
  Body body_ = Body::kUnknown;
  Refusal refusal_;
  std::optional<absl::Status> error_;  // found during the try
  char curl_words_[CURL_ERROR_SIZE] = {};
};

}  // namespace penstock::remote
