// SPDX-License-Identifier: Apache-2.0
// Datasets: registers, looks up and forgets them.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/core.h"
#include "control/dispatcher/differences.h"
#include "control/dispatcher/refusals.h"
#include "control/dispatcher/transaction.h"
#include "control/protocol/scoped_name.h"
#include "penstock/status.h"

namespace penstock::control {
namespace {

// A definition must fit into one piece of a snapshot.
constexpr size_t kMaxDefinitionBytes = size_t{512} << 20;

bool Equal(const DatasetRecord& dataset, const DatasetSummary& summary) {
  return dataset.summary.fingerprint == summary.fingerprint && dataset.summary.plan == summary.plan;
}

std::string NewId(const State& state, std::string_view name_space) {
  uint64_t number = state.next_dataset;
  while (true) {
    std::string id = ScopedName(name_space, absl::StrCat(number++));
    if (state.FindDataset(id) == nullptr) return id;
  }
}

// Returns the id of the existing dataset that the request gets; empty if it needs a new one.
absl::StatusOr<std::string> FindExisting(const State& state,
                                         const RegisterDatasetRequest& request) {
  if (request.definition.size() > kMaxDefinitionBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a definition of ", request.definition.size(),
                                                   " bytes; the most is ", kMaxDefinitionBytes,
                                                   ". Read large tensors from files"));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckScoped(request.name_space, request.dataset_id));
  if (request.dataset_id.empty()) {
    for (const auto& [id, dataset] : state.datasets) {
      const bool within = CheckScoped(request.name_space, id).ok();
      if (within && Equal(*dataset, request.summary)) return id;
    }
    return std::string();
  }
  const auto there = state.FindDataset(request.dataset_id);
  if (there == nullptr) return std::string();
  if (Equal(*there, request.summary)) return request.dataset_id;
  if (request.replace) return std::string();
  // Files are listed once: a later client reads the files that the first one saw.
  if (there->summary.fingerprint == request.summary.fingerprint) return request.dataset_id;
  return absl::InvalidArgumentError(
      absl::StrCat("dataset id ", request.dataset_id, " has another definition: they differ in ",
                   FirstDifference(there->summary.nodes, request.summary.nodes),
                   ". Give another id, or `replace`"));
}

}  // namespace

void Core::RegisterDataset(const RegisterDatasetRequest& request,
                           Done<RegisterDatasetAnswer> done) {
  Transaction txn(*this);
  auto answer = [&](absl::StatusOr<RegisterDatasetAnswer> answer) {
    txn.WhenDurable([done = std::move(done), answer = std::move(answer)](
                        const absl::Status& durable) { done(durable.ok() ? answer : durable); });
  };
  if (const Answer* before = state_.FindAnswer(request.request)) {
    if (const auto* same = std::get_if<RegisterDatasetAnswer>(before)) return answer(*same);
    return answer(absl::InvalidArgumentError("the request's number was another request's"));
  }
  absl::StatusOr<std::string> existing = FindExisting(state_, request);
  if (!existing.ok()) return answer(existing.status());
  RegisterDatasetAnswer registered{.dataset_id = *existing, .existed = !existing->empty()};
  if (!registered.existed) {
    registered.dataset_id =
        request.dataset_id.empty() ? NewId(state_, request.name_space) : request.dataset_id;
    txn.Apply(DatasetRegistered{std::make_shared<const DatasetRecord>(DatasetRecord{
        registered.dataset_id, request.definition, request.summary, options_.random()})});
    txn.Log("registered", {{"dataset", registered.dataset_id}});
    if (request.request.incarnation) txn.Apply(Answered{{request.request, registered}});
  }
  unused_since_.erase(registered.dataset_id);  // a client is about to read it
  answer(registered);
}

void Core::GetDataset(const std::string& id, uint64_t edition, Done<GetDatasetAnswer> done) {
  Transaction txn(*this);
  auto dataset = state_.FindDataset(id, edition);
  unused_since_.erase(id);
  txn.WhenDurable([done = std::move(done), dataset, id](const absl::Status& durable) {
    if (!durable.ok()) return done(durable);
    if (dataset == nullptr) {
      return done(absl::NotFoundError(absl::StrCat("Dataset id ", id, " not found")));
    }
    done(GetDatasetAnswer{dataset->id, dataset->definition, dataset->summary});
  });
}

void Core::UnregisterDataset(const std::string& id, DoneEmpty done) {
  Transaction txn(*this);
  absl::Status status;
  if (state_.FindDataset(id) == nullptr) {
    status = absl::NotFoundError(absl::StrCat("Dataset id ", id, " not found"));
  }
  for (const auto& [job_id, job] : state_.jobs) {
    if (status.ok() && job.dataset->id == id && !state_.IsOver(job)) {
      status = absl::FailedPreconditionError(
          absl::StrCat("dataset ", id, " is read by job ", job.name, "; cancel that first"));
    }
  }
  if (status.ok()) txn.Apply(DatasetUnregistered{id});
  txn.WhenDurable([done = std::move(done), status](const absl::Status& durable) {
    done(durable.ok() ? status : durable);
  });
}

}  // namespace penstock::control
