// SPDX-License-Identifier: Apache-2.0
// HTTP GETs of this process: one thread runs them all over connections that it
// keeps, tries again what may pass, and goes on at the byte it had reached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "control/env/files.h"
#include "control/env/remote/buffers.h"
#include "penstock/files.h"

namespace penstock::remote {

// Which version of a file bytes are of, as far as its server tells. Bytes of two
// versions never come together.
struct Version {
  std::string etag;           // with its quotes; empty: not told
  std::string last_modified;  // as told
  int64_t size = -1;          // bytes; -1: not known yet
};

// Who asks, for servers that want to know; asked for at each try.
struct Authorization {
  std::string provider;  // CURLOPT_AWS_SIGV4: "aws:amz:us-east-1:s3"; empty: nobody
  std::string user;      // "key:secret"
  std::string token;     // of a session; may be empty
};

struct GetRequest {
  std::string name;  // in errors
  std::string url;   // percent-encoded
  // Bytes [begin, begin + bytes), cut where the file ends; a server that sends
  // all instead is heard if that is no more than `bytes`. bytes < 0: everything,
  // not resumable.
  int64_t begin = 0;
  int64_t bytes = -1;
  Version version;                           // what the file has to be; empty: any
  std::function<Authorization()> authorize;  // of any thread; nullptr: nobody
  bool redirects = true;                     // followed
};

struct GetReply {
  Buffers::Buffer body;
  size_t size = 0;        // of the body, bytes
  bool is_whole = false;  // the body is the whole file, whatever was asked for
  Version version;
};

// A request under way. Destroying it gives it up. Neither it nor its reply
// outlives the client.
class PendingGet {
 public:
  virtual ~PendingGet() = default;
  // The outcome, once. NotFound, PermissionDenied … with the server's words;
  // Unavailable when no byte has come for retry_for; DataLoss when the file is
  // another by now; FailedPrecondition for a server that knows no ranges.
  virtual absl::StatusOr<GetReply> Wait(CancelFlag cancelled) = 0;
};

// Any thread.
class HttpClient {
 public:
  // `config` is checked.
  static absl::StatusOr<std::unique_ptr<HttpClient>> Make(const FilesConfig& config);
  virtual ~HttpClient() = default;  // what is under way ends with Cancelled

  // Never blocks.
  virtual std::unique_ptr<PendingGet> Start(GetRequest request) = 0;
  // Ends the thread; what is under way, or begun later, is Cancelled.
  virtual void Stop() = 0;
};

}  // namespace penstock::remote
