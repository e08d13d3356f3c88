// SPDX-License-Identifier: Apache-2.0
// The dispatcher as workers, clients and tools call it.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/dispatcher_status.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/requests.h"
#include "control/protocol/saved_reading.h"
#include "control/protocol/worker_messages.h"
#include "control/stub/session.h"
#include "penstock/tls.h"

namespace penstock::control {

// How long a call may try. Until then it retries after Unavailable, Aborted and broken connections,
// with jittered back-off. Requests have a RequestId, so that a repeated request takes effect only
// once.
struct CallOptions {
  absl::Duration timeout = absl::Seconds(60);
  std::stop_token stop;  // ends the wait: Cancelled
};

using ClientSession = Session<ClientUp>;
using WorkerSession = Session<WorkerUp>;
using ClientSessionEvents = SessionEvents<ClientDown>;
using WorkerSessionEvents = SessionEvents<WorkerDown>;
using ReconnectingClientSession = ReconnectingSession<ClientUp, ClientDown>;
using ReconnectingWorkerSession = ReconnectingSession<WorkerUp, WorkerDown>;
using ReconnectingClientEvents = ReconnectingEvents<ClientUp, ClientDown>;
using ReconnectingWorkerEvents = ReconnectingEvents<WorkerUp, WorkerDown>;

// The dispatcher, as its callers use it. Any thread. Calls wait for their answer. Errors are the
// dispatcher's own, or Unavailable "no dispatcher answers at <address> within <timeout>: <why>", or
// Cancelled.
class DispatcherStub {
 public:
  // Makes a stub for "[grpc://]host:port", or "grpcs://host:port" with `tls`. Does not connect yet.
  // InvalidArgument if `tls` is set for a plain service or is not valid; NotFound for files that do
  // not exist.
  static absl::StatusOr<std::unique_ptr<DispatcherStub>> Make(std::string_view service,
                                                              const TlsConfig& tls = {});
  virtual ~DispatcherStub() = default;

  virtual const std::string& address() const = 0;  // "host:port"
  // Ends every call that waits (Cancelled); later calls fail at once. Sessions are stopped by their
  // owners.
  virtual void Stop() = 0;

  // FailedPrecondition with both ranges if the two sides have no control version in common.
  virtual absl::StatusOr<VersionRange> GetVersion(CallOptions options) = 0;

  // An equal definition gets the id that it already has. If `dataset_id` has a different
  // definition, InvalidArgument names the first node that differs, unless `replace`.
  virtual absl::StatusOr<RegisterDatasetAnswer> GetOrRegisterDataset(
      const RegisterDatasetRequest& request, CallOptions options) = 0;
  // Returns the dataset of that id, in the edition that a job reads; edition 0: the current one.
  // NotFound "Dataset id X not found".
  virtual absl::StatusOr<GetDatasetAnswer> GetDataset(std::string_view dataset_id, uint64_t edition,
                                                      CallOptions options) = 0;
  // FailedPrecondition while an unfinished job reads it.
  virtual absl::Status UnregisterDataset(std::string_view dataset_id, CallOptions options) = 0;

  // InvalidArgument names each field in which the existing job of that name differs.
  virtual absl::StatusOr<JobAnswer> GetOrCreateJob(const GetOrCreateJobRequest& request,
                                                   CallOptions options) = 0;
  // Gets or creates a job that begins with the states of all ranks. The first caller makes it, in
  // place of a job under a different run_id that no client reads any more. FailedPrecondition if
  // the name is in use for a different job.
  virtual absl::StatusOr<JobAnswer> RestoreJob(const RestoreJobRequest& request,
                                               CallOptions options) = 0;
  // Returns the data that a state of one repetition needs to continue on another service. It has no
  // partitions if the repetition has not begun. NotFound for an unknown job.
  virtual absl::StatusOr<SavedRepetition> GetReading(const GetReadingRequest& request,
                                                     CallOptions options) = 0;
  // Cancels a job by name or decimal id; its readers get Cancelled. NotFound if there is none.
  virtual absl::Status CancelJob(std::string_view job, CallOptions options) = 0;
  // Forgets a finished or cancelled job and its name; FailedPrecondition for any other job.
  virtual absl::Status RemoveJob(std::string_view job, CallOptions options) = 0;

  // Returns the whole status for people: datasets, jobs, workers.
  virtual absl::StatusOr<DispatcherStatus> GetStatus(CallOptions options) = 0;

  // Opens a stream; `events` must outlive the session. Prefer the two functions below.
  virtual std::unique_ptr<ClientSession> OpenClientSession(ClientSessionEvents* events) = 0;
  virtual std::unique_ptr<WorkerSession> OpenWorkerSession(WorkerSessionEvents* events) = 0;

  // Open streams that reconnect by themselves; the stub must outlive them. Errors are those of
  // KeepOpen().
  absl::StatusOr<std::unique_ptr<ReconnectingClientSession>> KeepClientSession(
      ReconnectingClientEvents* events, ReconnectOptions options = {});
  absl::StatusOr<std::unique_ptr<ReconnectingWorkerSession>> KeepWorkerSession(
      ReconnectingWorkerEvents* events, ReconnectOptions options = {});
};

}  // namespace penstock::control
