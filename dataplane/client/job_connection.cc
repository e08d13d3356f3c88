// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/job_connection.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "control/observe/event_log.h"
#include "control/protocol/scoped_name.h"
#include "dataplane/client/advice.h"
#include "dataplane/client/client_settings.h"
#include "dataplane/client/distribute_options.h"
#include "dataplane/client/registration.h"
#include "dataplane/client/status_server.h"
#include "dataplane/transfer/library.h"
#include "dataplane/transfer/ucx/settings.h"
#include "dataplane/transfer/ucx/transport.h"
#include "include/status_macros.h"

namespace penstock::client {
namespace {

// The maximum number of times that one join registers a dataset.
constexpr int kMostRegistrations = 3;

}  // namespace

absl::Status JobConnection::Open() {
  if (stub_ != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ClientSettings settings, ReadClientSettings(ProcessEnvironment()));
  RETURN_IF_ERROR(transfer::ucx::SetLanes(settings.ucx_lanes));
  RETURN_IF_ERROR(transfer::LoadTransports(settings.transports));
  preference_ = MakeTransportPreference(options_, settings);
  // If ucx is not named, it is opened only when a worker is found that offers no better protocol.
  if (transfer::ucx::IsNamed(preference_.protocol, preference_.fallback))
    transfer::ucx::OpenEarly();
  tls_ = settings.tls;
  tcp_ = settings.tcp;
  StartStatusServer(settings.metrics_port, settings.metrics_token);
  ASSIGN_OR_RETURN(stub_, control::DispatcherStub::Make(options_.service, tls_));
  return absl::OkStatus();
}

absl::StatusOr<control::JobAnswer> JobConnection::Join(const std::optional<std::string>& job_name,
                                                       const std::optional<MergedStates>& merged) {
  const control::CallOptions call{.timeout = options_.timeout, .stop = stop_};
  control::GetOrCreateJobRequest request;
  request.request = NewRequest();
  request.name_space = options_.name_space;
  std::string name = options_.job_name;
  if (node_->inputs.empty() && !name.empty()) {
    // The id in the name lets datasets that were registered separately be read under one job_name.
    name = absl::StrCat("dataset_id=/", Get<std::string>(node_->attrs, "dataset_id"), "/", name);
  }
  if (!name.empty()) request.name = control::ScopedName(options_.name_space, name);
  AdviseIfEachRankReadsAll(DatasetOf(node_), options_, *StderrEventLog());
  request.run_id = options_.run_id;
  request.seed = options_.seed;
  if (job_name.has_value()) request.name = *job_name;
  if (merged.has_value()) {
    if (request.name.empty()) request.name = merged->job_name;
    if (!merged->run_id.empty()) request.run_id = merged->run_id;
    request.seed = merged->seed;
  }
  request.terms = TermsOf(options_);
  const auto join = [&] {
    return merged.has_value() ? stub_->RestoreJob({request, merged->restoration}, call)
                              : stub_->GetOrCreateJob(request, call);
  };
  if (node_->inputs.empty()) {
    request.dataset_id = Get<std::string>(node_->attrs, "dataset_id");
    return join();
  }
  ASSIGN_OR_RETURN(control::RegisterDatasetRequest dataset,
                   RegistrationOf(DatasetOf(node_->inputs[0]), options_.name_space, stop_));
  request.dataset_fingerprint = dataset.summary.fingerprint;
  for (int attempt = 1;; ++attempt) {
    ASSIGN_OR_RETURN(control::RegisterDatasetAnswer answer,
                     stub_->GetOrRegisterDataset(dataset, call));
    request.dataset_id = answer.dataset_id;
    absl::StatusOr<control::JobAnswer> job = join();
    // NotFound: since the registration, a dispatcher that does not know the dataset may have
    // started.
    if (!absl::IsNotFound(job.status()) || attempt == kMostRegistrations) return job;
    dataset.request = NewRequest();
    request.request = NewRequest();
  }
}

}  // namespace penstock::client
