// SPDX-License-Identifier: Apache-2.0
// Connects a Distribute node to its job: reads the process's settings, makes the stub, registers
// the dataset and joins. Reason to change: the requests of a join. One thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "control/stub/dispatcher_stub.h"
#include "dataplane/client/session_state/state.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/transfer/transport.h"
#include "penstock/distribute.h"

namespace penstock::client {

class JobConnection {
 public:
  JobConnection(NodePtr node, DistributeOptions options, std::stop_token stop)
      : node_(std::move(node)), options_(std::move(options)), stop_(std::move(stop)) {}

  // Reads the settings, loads the transports and makes the stub. Does nothing if an earlier call
  // succeeded.
  absl::Status Open();
  // REQUIRES, for all methods from here on: Open() has succeeded. Any thread.
  control::DispatcherStub& stub() const { return *stub_; }
  const transfer::TransportPreference& transport_preference() const { return preference_; }
  const TlsConfig& tls() const { return tls_; }
  const transfer::TcpOptions& tcp() const { return tcp_; }

  // Registers the dataset and joins the job. Ends early when a stop is requested. `job_name`: the
  // name in a restored state; `merged`: the states of all ranks, if the job continues from them.
  absl::StatusOr<control::JobAnswer> Join(const std::optional<std::string>& job_name,
                                          const std::optional<MergedStates>& merged);

 private:
  const NodePtr node_;
  const DistributeOptions options_;
  const std::stop_token stop_;
  transfer::TransportPreference preference_;
  TlsConfig tls_;
  transfer::TcpOptions tcp_;
  std::unique_ptr<control::DispatcherStub> stub_;  // set last
};

}  // namespace penstock::client
