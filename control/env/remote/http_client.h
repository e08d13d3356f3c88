// SPDX-License-Identifier: Apache-2.0
// The HTTP GETs of this process. One thread runs all of them and keeps the connections. After a
// temporary failure, the thread tries the request again from the byte that the last try had
// reached.
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
#include "control/env/remote/url_rules.h"
#include "penstock/files.h"

namespace penstock::remote {

// The version of a file, as reported by its server. A reply never mixes bytes of two versions.
struct Version {
  std::string etag;           // with its quotes; empty: not known
  std::string last_modified;  // as the server wrote it
  int64_t size = -1;          // bytes; -1: not known yet
};

// The identity that a request is signed with; obtained again for each try.
struct Authorization {
  std::string provider;  // CURLOPT_AWS_SIGV4: "aws:amz:us-east-1:s3"; empty: no identity
  std::string user;      // "key:secret"
  std::string token;     // of a session; may be empty
};

struct GetRequest {
  std::string name;  // in errors
  std::string url;   // percent-encoded
  // The bytes [begin, begin + bytes) of the file, or fewer if the file ends before that. A server
  // may send the whole file instead if the file's size is at most `bytes`. bytes < 0: the whole
  // file; such a request cannot be resumed.
  int64_t begin = 0;
  int64_t bytes = -1;
  Version version;                           // the version required; empty: any
  std::function<Authorization()> authorize;  // called on any thread; nullptr: no identity
  bool redirects = true;                     // whether redirects are followed
  std::shared_ptr<const UrlRules> rules;     // for each connection; nullptr: all are allowed
};

struct GetReply {
  Buffers::Buffer body;
  size_t size = 0;        // of the body, bytes
  bool is_whole = false;  // the body is the whole file, whatever was requested
  Version version;
};

// A request under way. The destructor cancels the request. Neither this object nor the reply may
// outlive the client.
class PendingGet {
 public:
  virtual ~PendingGet() = default;
  // Waits for the outcome and returns it, once. Errors: NotFound, PermissionDenied … with the
  // server's text; Unavailable if no byte arrived for retry_for; DataLoss if the file has changed;
  // FailedPrecondition if the server does not support ranges. Returns Cancelled once `stop` is
  // requested; Wait() may be called again after that.
  virtual absl::StatusOr<GetReply> Wait(const std::stop_token& stop) = 0;
};

// Any thread.
class HttpClient {
 public:
  // REQUIRES: Check(config) is OK.
  static absl::StatusOr<std::unique_ptr<HttpClient>> Make(const FilesConfig& config);
  virtual ~HttpClient() = default;  // requests under way end with Cancelled

  // Never blocks.
  virtual std::unique_ptr<PendingGet> Start(GetRequest request) = 0;
  // Ends the thread. Requests that are under way or are started later end with Cancelled.
  virtual void Stop() = 0;
};

}  // namespace penstock::remote
