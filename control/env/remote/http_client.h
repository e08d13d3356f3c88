// SPDX-License-Identifier: Apache-2.0
// HTTP GETs of this process. One thread runs them all over connections that it keeps, retries after
// temporary failures, and resumes at the byte that it had reached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "control/env/files.h"
#include "control/env/remote/buffers.h"
#include "penstock/files.h"

namespace penstock::remote {

// The version of a file, as far as its server reports it. Bytes of two versions are never mixed.
struct Version {
  std::string etag;           // with its quotes; empty: not known
  std::string last_modified;  // as the server wrote it
  int64_t size = -1;          // bytes; -1: not known yet
};

// The identity for servers that require one; obtained for each try.
struct Authorization {
  std::string provider;  // CURLOPT_AWS_SIGV4: "aws:amz:us-east-1:s3"; empty: no identity
  std::string user;      // "key:secret"
  std::string token;     // of a session; may be empty
};

struct GetRequest {
  std::string name;  // in errors
  std::string url;   // percent-encoded
  // Bytes [begin, begin + bytes), cut at the end of the file. A server may send the whole file
  // instead if the file has at most `bytes`. bytes < 0: everything, not resumable.
  int64_t begin = 0;
  int64_t bytes = -1;
  Version version;                           // the version required; empty: any
  std::function<Authorization()> authorize;  // called on any thread; nullptr: no identity
  bool redirects = true;                     // followed
};

struct GetReply {
  Buffers::Buffer body;
  size_t size = 0;        // of the body, bytes
  bool is_whole = false;  // the body is the whole file, whatever was requested
  Version version;
};

// A request under way. Destroying it cancels it. Neither it nor its reply may outlive the client.
class PendingGet {
 public:
  virtual ~PendingGet() = default;
  // Returns the outcome, once. NotFound, PermissionDenied … with the server's text; Unavailable if
  // no byte arrived for retry_for; DataLoss if the file has changed; FailedPrecondition for a
  // server that does not support ranges. Cancelled once `stop` is requested; then Wait() may be
  // called again.
  virtual absl::StatusOr<GetReply> Wait(const std::stop_token& stop) = 0;
};

// Any thread.
class HttpClient {
 public:
  // `config` must have been checked.
  static absl::StatusOr<std::unique_ptr<HttpClient>> Make(const FilesConfig& config);
  virtual ~HttpClient() = default;  // requests under way end with Cancelled

  // Never blocks.
  virtual std::unique_ptr<PendingGet> Start(GetRequest request) = 0;
  // Ends the thread. Requests under way, or started later, end with Cancelled.
  virtual void Stop() = 0;
};

}  // namespace penstock::remote
