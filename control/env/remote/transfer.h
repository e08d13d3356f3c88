// SPDX-License-Identifier: Apache-2.0
// One GET with all its tries. Used by the client's thread alone.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "control/env/remote/http_client.h"
#include "control/env/remote/retry.h"
#include "control/observe/metrics.h"

namespace penstock::remote {

using Clock = std::chrono::steady_clock;

class Transfer {
 public:
  // `config` and `buffers` outlive it.
  Transfer(GetRequest request, const FilesConfig& config, Buffers& buffers);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Makes `easy` ready for the next try, which goes on where the last one ended.
  void Begin(CURL* easy);
  // The try ended so; `easy` is no longer used. nullopt: to be begun again at
  // due().
  std::optional<absl::StatusOr<GetReply>> End(CURLcode code);

  Clock::time_point due() const { return due_; }
  // When a try that is under way and receives nothing is to be ended.
  Clock::time_point stalls_at() const;
  // Why it is tried again, once that has lasted for long; else empty.
  std::string Complaint() const;

 private:
  // What the head of a reply means for its body.
  enum class Body { kUnknown, kWanted, kRefused };

  static size_t OnHeader(char* line, size_t, size_t size, void* self);
  static size_t OnBody(char* bytes, size_t, size_t size, void* self);
  // Examines the head of a reply; sets error_ if it is of another file, or of no use.
  Body Examine();
  Body ExamineWhole(int64_t length);
  // Compares with what is known of the file, and keeps what is new. Sets error_.
  bool IsSameVersion(const Version& told);
  bool Keep(const char* bytes, size_t size);
  std::string Header(const char* name) const;  // of the last reply; empty: none
  curl_slist* Headers(const Authorization& authorization) const;

  absl::StatusOr<GetReply> Finished();
  // What a reply that will not pass leads to.
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
  Version version_;  // of the bytes so far

  Buffers::Buffer buffer_;
  size_t capacity_ = 0;
  size_t got_ = 0;  // bytes in buffer_
  bool is_whole_ = false;

  Backoff backoff_;
  int tries_ = 0;
  Clock::time_point due_;        // of the next try
  Clock::time_point began_;      // the request, or the last byte came
  Clock::time_point try_began_;  // or the last byte came
  std::string why_;              // the last try failed

  // --- Of the try under way
  CURL* easy_ = nullptr;
  curl_slist* headers_ = nullptr;
  Body body_ = Body::kUnknown;
  Refusal refusal_;
  std::optional<absl::Status> error_;  // found in the middle of it
  char curl_words_[CURL_ERROR_SIZE] = {};
};

}  // namespace penstock::remote
