// SPDX-License-Identifier: Apache-2.0
#include "control/stub/dispatcher_stub.h"

#include <utility>

#include "include/status_macros.h"

namespace penstock::control {

absl::StatusOr<DispatcherStatus> DispatcherStub::GetStatus(const CallOptions& options,
                                                           const StatusQuery& query) {
  return CollectStatus(
      query, [&](const StatusRequest& request) { return GetStatusPage(request, options); });
}

absl::StatusOr<std::unique_ptr<ReconnectingClientSession>> DispatcherStub::KeepClientSession(
    ReconnectingClientEvents* events, ReconnectOptions options) {
  return KeepOpen<ClientUp, ClientDown>(
      [this](const std::string& address, ClientSessionEvents* stream) {
        return OpenClientSession(address, stream);
      },
      addresses_, events, options);
}

absl::StatusOr<std::unique_ptr<ReconnectingWorkerSession>> DispatcherStub::KeepWorkerSession(
    ReconnectingWorkerEvents* events, ReconnectOptions options) {
  return KeepOpen<WorkerUp, WorkerDown>(
      [this](const std::string& address, WorkerSessionEvents* stream) {
        return OpenWorkerSession(address, stream);
      },
      addresses_, events, options);
}

}  // namespace penstock::control
