// SPDX-License-Identifier: Apache-2.0
// A DispatcherStub over the simulated network. Each call and each stream has a connection of its
// own (port.h).
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "control/stub/dispatcher_stub.h"
#include "penstock/ids.h"
#include "tools/simulator/world/network.h"

namespace penstock::simulator {

// Called on the fiber, and in the process, that sends a client's hello.
using OnHello = std::function<void(ClientId client)>;

// Each method calls from the process of the calling fiber. Calls are repeated as those of the stub
// over gRPC are.
class SimStub final : public control::DispatcherStub {
 public:
  // `addresses`: "host:port" each. `network` must outlive the stub and its sessions.
  SimStub(
      Network& network, std::vector<std::string> addresses, OnHello on_hello = [](ClientId) {})
      : DispatcherStub(std::move(addresses)), network_(network), on_hello_(std::move(on_hello)) {}
  ~SimStub() override { Stop(); }

  void Stop() override { stop_.request_stop(); }

  absl::StatusOr<control::VersionRange> GetVersion(control::CallOptions options) override;
  absl::StatusOr<control::RegisterDatasetAnswer> GetOrRegisterDataset(
      const control::RegisterDatasetRequest& request, control::CallOptions options) override;
  absl::StatusOr<control::GetDatasetAnswer> GetDataset(std::string_view dataset_id,
                                                       uint64_t edition,
                                                       control::CallOptions options) override;
  absl::Status UnregisterDataset(std::string_view dataset_id,
                                 control::CallOptions options) override;
  absl::StatusOr<control::JobAnswer> GetOrCreateJob(const control::GetOrCreateJobRequest& request,
                                                    control::CallOptions options) override;
  absl::StatusOr<control::JobAnswer> RestoreJob(const control::RestoreJobRequest& request,
                                                control::CallOptions options) override;
  absl::StatusOr<control::SavedRepetition> GetReading(const control::GetReadingRequest& request,
                                                      control::CallOptions options) override;
  absl::Status CancelJob(std::string_view job, control::CallOptions options) override;
  absl::Status RemoveJob(std::string_view job, control::CallOptions options) override;
  absl::StatusOr<control::DispatcherStatus> GetStatusPage(const control::StatusRequest& request,
                                                          control::CallOptions options) override;
  absl::Status FinaliseUpgrade(control::CallOptions options) override;

  std::unique_ptr<control::ClientSession> OpenClientSession(
      const std::string& address, control::ClientSessionEvents* events) override;
  std::unique_ptr<control::WorkerSession> OpenWorkerSession(
      const std::string& address, control::WorkerSessionEvents* events) override;

 private:
  // Calls the method, again if need be, and returns its answer.
  template <class WireAnswer, class WireRequest>
  absl::StatusOr<WireAnswer> Call(const std::string& method, const WireRequest& request,
                                  const control::CallOptions& options);
  // Does the same, and converts request and answer.
  template <class WireRequest, class WireAnswer, class Request>
  auto Ask(const std::string& method, const Request& request, const control::CallOptions& options);

  Network& network_;
  const OnHello on_hello_;
  std::stop_source stop_;
};

// While it exists, DispatcherStub::Make("sim://host:port") makes stubs for this network. One exists
// at a time.
class SimScheme {
 public:
  explicit SimScheme(
      Network& network, OnHello on_hello = [](ClientId) {});
  ~SimScheme();
  SimScheme(const SimScheme&) = delete;
  SimScheme& operator=(const SimScheme&) = delete;
};

}  // namespace penstock::simulator
