// SPDX-License-Identifier: Apache-2.0
// A file on a server, which is read in ranges.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "control/env/files.h"
#include "control/env/remote/http_client.h"
#include "control/env/remote/range_stream.h"
#include "penstock/files.h"

namespace penstock::remote {

// The state that all remote files of a process share. Must outlive the files.
struct RemoteContext {
  RemoteContext(FilesConfig given, std::unique_ptr<HttpClient> http)
      : config(std::move(given)), budget(config.read_ahead_bytes), client(std::move(http)) {}

  const FilesConfig config;
  RangeBudget budget;
  const std::unique_ptr<HttpClient> client;
};

// Opens the file at the address in `request`. Sets the request's range, version and name. The reply
// to the request contains the file's first bytes.
absl::StatusOr<std::unique_ptr<File>> OpenRemote(RemoteContext& context, std::string name,
                                                 GetRequest request, std::stop_token stop);

}  // namespace penstock::remote
