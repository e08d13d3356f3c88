// SPDX-License-Identifier: Apache-2.0
#include "control/stub/dispatcher_stub.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "include/status_macros.h"

namespace penstock::control {
namespace {

// The number of jobs and datasets on a page: few enough that the dispatcher lists them within a
// fraction of a heartbeat.
constexpr int64_t kPageSize = 256;

template <class List>
void MoveAll(List& from, List& to) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

}  // namespace

absl::StatusOr<DispatcherStatus> DispatcherStub::GetStatus(const CallOptions& options,
                                                           const std::string& name_space) {
  StatusRequest request{.name_space = name_space, .page_size = kPageSize};
  ASSIGN_OR_RETURN(DispatcherStatus status, GetStatusPage(request, options));
  while (!status.next_page_token.empty()) {
    request.page_token = std::exchange(status.next_page_token, "");
    ASSIGN_OR_RETURN(DispatcherStatus page, GetStatusPage(request, options));
    MoveAll(page.datasets, status.datasets);
    MoveAll(page.jobs, status.jobs);
    MoveAll(page.links, status.links);
    status.next_page_token = std::move(page.next_page_token);
  }
  return status;
}

absl::StatusOr<std::unique_ptr<ReconnectingClientSession>> DispatcherStub::KeepClientSession(
    ReconnectingClientEvents* events, ReconnectOptions options) {
  options.address = address();
  return KeepOpen<ClientUp, ClientDown>(
      [this](ClientSessionEvents* stream) { return OpenClientSession(stream); }, events, options);
}

absl::StatusOr<std::unique_ptr<ReconnectingWorkerSession>> DispatcherStub::KeepWorkerSession(
    ReconnectingWorkerEvents* events, ReconnectOptions options) {
  options.address = address();
  return KeepOpen<WorkerUp, WorkerDown>(
      [this](WorkerSessionEvents* stream) { return OpenWorkerSession(stream); }, events, options);
}

}  // namespace penstock::control
