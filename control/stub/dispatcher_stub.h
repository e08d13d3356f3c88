// SPDX-License-Identifier: Apache-2.0
// The interface through which workers, clients and tools call the dispatcher.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/dispatcher_status.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/requests.h"
#include "control/protocol/saved_reading.h"
#include "control/protocol/worker_messages.h"
#include "control/stub/addresses.h"
#include "control/stub/session.h"
#include "penstock/tls.h"

namespace penstock::control {

// The time for which a call may try. Within this time, the call is repeated after Unavailable,
// Aborted and broken connections, with jittered back-off. Requests have a RequestId, so that a
// repeated request takes effect only once.
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

// Any thread may call any method. Calls wait for their answers. They go to the address that
// answered last, and to the others if no leader answers there. Errors are those of the dispatcher
// itself, Unavailable "no dispatcher answers at <addresses> within <timeout>: <why>", Cancelled, or
// FailedPrecondition, which names the address, if the dispatcher's release does not have the call.
// With several addresses, the others are tried instead, and this is the reason in Unavailable.
class DispatcherStub {
 public:
  // Makes a stub for a service (target.h): "[grpc://]host:port", "grpcs://host:port" with `tls`, or
  // an address of a registered scheme (scheme.h); or several addresses after one protocol. Does not
  // connect yet. InvalidArgument if `tls` is set for a plain
  // service or is not valid; NotFound for files that do not exist.
  static absl::StatusOr<std::unique_ptr<DispatcherStub>> Make(std::string_view service,
                                                              const TlsConfig& tls = {});
  virtual ~DispatcherStub() = default;

  const std::string& address() const { return addresses_.text(); }  // "host:port", or several
  Addresses& addresses() { return addresses_; }
  // Ends all calls that wait, with Cancelled. Later calls fail at once. Sessions are not affected:
  // their owners stop them.
  virtual void Stop() = 0;

  // FailedPrecondition, with both ranges, if dispatcher and caller share no control version.
  virtual absl::StatusOr<VersionRange> GetVersion(CallOptions options) = 0;

  // A definition that is already registered keeps its id. If the id in the request has a different
  // definition, returns InvalidArgument with the first node that differs, unless `replace` is set.
  virtual absl::StatusOr<RegisterDatasetAnswer> GetOrRegisterDataset(
      const RegisterDatasetRequest& request, CallOptions options) = 0;
  // Returns the dataset with this id, in the edition that a job reads; edition 0: the current
  // edition. NotFound "Dataset id X not found".
  virtual absl::StatusOr<GetDatasetAnswer> GetDataset(std::string_view dataset_id, uint64_t edition,
                                                      CallOptions options) = 0;
  // FailedPrecondition while an unfinished job reads the dataset.
  virtual absl::Status UnregisterDataset(std::string_view dataset_id, CallOptions options) = 0;

  // InvalidArgument, which names each field that differs, if a job with the same name differs.
  virtual absl::StatusOr<JobAnswer> GetOrCreateJob(const GetOrCreateJobRequest& request,
                                                   CallOptions options) = 0;
  // Gets or creates a job that begins with the states of all ranks. The first call makes the job.
  // The new job replaces a job of the same name under a different run_id, if no client reads that
  // job any more. FailedPrecondition if the name is in use for a different job.
  virtual absl::StatusOr<JobAnswer> RestoreJob(const RestoreJobRequest& request,
                                               CallOptions options) = 0;
  // Returns the data that a state needs, for one repetition, to continue on another service. If the
  // repetition has not begun, the answer has no partitions. NotFound for an unknown job.
  virtual absl::StatusOr<SavedRepetition> GetReading(const GetReadingRequest& request,
                                                     CallOptions options) = 0;
  // Cancels the job with this name or decimal id. Its readers get Cancelled. NotFound if there is
  // no such job.
  virtual absl::Status CancelJob(std::string_view job, CallOptions options) = 0;
  // Forgets a finished or cancelled job and its name; FailedPrecondition for any other job.
  virtual absl::Status RemoveJob(std::string_view job, CallOptions options) = 0;

  // Returns a page of the status. InvalidArgument for a page_token that no answer contained.
  virtual absl::StatusOr<DispatcherStatus> GetStatusPage(const StatusRequest& request,
                                                         CallOptions options) = 0;
  // Returns the status, for people; without a query, all of it. Gets the pages one by one, so the
  // dispatcher may change in between. InvalidArgument and PermissionDenied of the dispatcher.
  absl::StatusOr<DispatcherStatus> GetStatus(const CallOptions& options,
                                             const StatusQuery& query = {});

  // Raises the format of the journal to the newest one of the dispatcher's release, so that earlier
  // releases can no longer read it.
  virtual absl::Status FinaliseUpgrade(CallOptions options) = 0;

  // Open a stream to the dispatcher at `address`, which is one of addresses(). `events` must
  // outlive the session. Prefer the two functions at the end.
  virtual std::unique_ptr<ClientSession> OpenClientSession(const std::string& address,
                                                           ClientSessionEvents* events) = 0;
  virtual std::unique_ptr<WorkerSession> OpenWorkerSession(const std::string& address,
                                                           WorkerSessionEvents* events) = 0;
  // Do so at the address that answered last.
  std::unique_ptr<ClientSession> OpenClientSession(ClientSessionEvents* events) {
    return OpenClientSession(addresses_.all()[addresses_.first()], events);
  }
  std::unique_ptr<WorkerSession> OpenWorkerSession(WorkerSessionEvents* events) {
    return OpenWorkerSession(addresses_.all()[addresses_.first()], events);
  }

  // Open sessions that reconnect by themselves. The stub must outlive the sessions. Errors are
  // those of KeepOpen().
  absl::StatusOr<std::unique_ptr<ReconnectingClientSession>> KeepClientSession(
      ReconnectingClientEvents* events, ReconnectOptions options = {});
  absl::StatusOr<std::unique_ptr<ReconnectingWorkerSession>> KeepWorkerSession(
      ReconnectingWorkerEvents* events, ReconnectOptions options = {});

 protected:
  explicit DispatcherStub(std::vector<std::string> addresses) : addresses_(std::move(addresses)) {}

 private:
  Addresses addresses_;
};

}  // namespace penstock::control
