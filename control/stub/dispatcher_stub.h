// SPDX-License-Identifier: Apache-2.0
// The dispatcher as workers, clients and tools call it.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/protocol/saved_reading.h"
#include "control/protocol/session_messages.h"
#include "control/stub/session.h"
#include "penstock/tls.h"

namespace penstock::control {

// How long a call may try. Unavailable, Aborted and broken connections are
// tried again until then, with jittered back-off: requests are repeatable by
// their RequestId, so that each takes effect once.
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

// Any thread. Calls wait for their answer; errors are the dispatcher's own, or
// Unavailable "no dispatcher answers at <address> within <timeout>: <why>",
// or Cancelled.
class DispatcherStub {
 public:
  // A stub for "[grpc://]host:port", or "grpcs://host:port" with `tls`. Reaches for
  // nothing yet. InvalidArgument if `tls` says anything for a plain service, or makes
  // no sense; NotFound for files that are not there.
  static absl::StatusOr<std::unique_ptr<DispatcherStub>> Make(std::string_view service,
                                                              const TlsConfig& tls = {});
  virtual ~DispatcherStub() = default;

  virtual const std::string& address() const = 0;  // "host:port"
  // Ends every call that waits (Cancelled); later ones fail at once. Sessions
  // are stopped by their owners.
  virtual void Stop() = 0;

  // FailedPrecondition naming both ranges if no control version is spoken by both.
  virtual absl::StatusOr<VersionRange> GetVersion(CallOptions options) = 0;

  // Equal definitions get the id they have. InvalidArgument naming the first
  // node that differs if `dataset_id` has another definition, unless `replace`.
  virtual absl::StatusOr<RegisterDatasetAnswer> GetOrRegisterDataset(
      const RegisterDatasetRequest& request, CallOptions options) = 0;
  // By id, and edition where a job reads it; 0: what the id has now. NotFound "Dataset id X not
  // found".
  virtual absl::StatusOr<GetDatasetAnswer> GetDataset(std::string_view dataset_id, uint64_t edition,
                                                      CallOptions options) = 0;
  // FailedPrecondition while a job that is not finished reads it.
  virtual absl::Status UnregisterDataset(std::string_view dataset_id, CallOptions options) = 0;

  // InvalidArgument naming each field in which the job of that name differs.
  virtual absl::StatusOr<JobAnswer> GetOrCreateJob(const GetOrCreateJobRequest& request,
                                                   CallOptions options) = 0;
  // The same for a job that begins with the states of all ranks: whoever asks
  // first makes it, in place of one of another run_id that nobody reads any more.
  // FailedPrecondition for a job of that name that is there for others.
  virtual absl::StatusOr<JobAnswer> RestoreJob(const RestoreJobRequest& request,
                                               CallOptions options) = 0;
  // What a state of one repetition needs to go on elsewhere; without partitions
  // if that was not begun. NotFound for a job that is not there.
  virtual absl::StatusOr<SavedRepetition> GetReading(const GetReadingRequest& request,
                                                     CallOptions options) = 0;
  // By name or decimal id; its readers get Cancelled. NotFound if there is none.
  virtual absl::Status CancelJob(std::string_view job, CallOptions options) = 0;
  // Forgets a finished or cancelled job and its name; FailedPrecondition for others.
  virtual absl::Status RemoveJob(std::string_view job, CallOptions options) = 0;

  // Everything for people to read: datasets, jobs, workers.
  virtual absl::StatusOr<DispatcherStatus> GetStatus(CallOptions options) = 0;

  // Opens a stream; `events` must outlive the session. Prefer the two below.
  virtual std::unique_ptr<ClientSession> OpenClientSession(ClientSessionEvents* events) = 0;
  virtual std::unique_ptr<WorkerSession> OpenWorkerSession(WorkerSessionEvents* events) = 0;

  // Streams that come back by themselves; the stub must outlive them. Errors as of KeepOpen().
  absl::StatusOr<std::unique_ptr<ReconnectingClientSession>> KeepClientSession(
      ReconnectingClientEvents* events, ReconnectOptions options = {});
  absl::StatusOr<std::unique_ptr<ReconnectingWorkerSession>> KeepWorkerSession(
      ReconnectingWorkerEvents* events, ReconnectOptions options = {});
};

}  // namespace penstock::control
