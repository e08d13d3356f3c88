// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/dataset_registry.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/messages/differences.h"
#include "control/dispatcher/messages/refusals.h"
#include "control/dispatcher/messages/texts.h"
#include "control/dispatcher/transaction.h"
#include "control/policy/authorization.h"
#include "control/protocol/scoped_name.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// A definition must fit into one piece of a snapshot.
constexpr size_t kMaxDefinitionBytes = size_t{512} << 20;

// Compares every byte. A fingerprint has 64 bits and comes from the registering client. If it were
// trusted, a client could register a definition of its own under the fingerprint of another
// client's definition, and the other client would get this id.
bool Equal(const DatasetRecord& dataset, const RegisterDatasetRequest& request) {
  return dataset.summary == request.summary && dataset.definition == request.definition;
}

std::string NewId(const State& state, std::string_view name_space) {
  uint64_t number = state.next_dataset;
  while (true) {
    std::string id = ScopedName(name_space, absl::StrCat(number++));
    if (state.FindDataset(id) == nullptr) return id;
  }
}

// Returns the id of the existing dataset that the request refers to; empty if the request needs a
// new dataset.
absl::StatusOr<std::string> FindExisting(const State& state, const Caller& caller,
                                         const RegisterDatasetRequest& request) {
  if (request.definition.size() > kMaxDefinitionBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the dataset's definition has ", request.definition.size(), " bytes; the limit is ",
        kMaxDefinitionBytes, ". Read large tensors from files"));
  }
  if (request.dataset_id.empty()) {
    for (const auto& [id, dataset] : state.datasets) {
      const bool within = CheckScoped(request.name_space, id).ok();
      if (within && Equal(*dataset, request) &&
          Authorize(Action::kRegisterDataset, caller, *dataset).ok()) {
        return id;
      }
    }
    return std::string();
  }
  const auto there = state.FindDataset(request.dataset_id);
  if (there == nullptr) return std::string();
  RETURN_IF_ERROR(Authorize(Action::kRegisterDataset, caller, *there));
  if (Equal(*there, request)) return request.dataset_id;
  if (request.replace) return std::string();
  // The client that registered the id decides what the id means; the fingerprint only finds
  // mistakes. Files are listed once: a later client reads the files that the first client saw.
  if (there->summary.fingerprint == request.summary.fingerprint) return request.dataset_id;
  return absl::InvalidArgumentError(absl::StrCat(
      "dataset id ", request.dataset_id, " has a different definition: they differ in ",
      FirstDifference(there->summary.nodes, request.summary.nodes),
      ". Use a different id, or set `replace`"));
}

}  // namespace

absl::StatusOr<RegisterDatasetAnswer> DatasetRegistry::Register(
    Transaction& txn, const RegisterDatasetRequest& request) {
  RETURN_IF_ERROR(CheckTexts(request));
  RETURN_IF_ERROR(CheckScoped(request.name_space, request.dataset_id));
  RETURN_IF_ERROR(Authorize(Action::kRegisterDataset, txn.caller(), request.name_space));
  if (const Answer* before = state_.FindAnswer(request.request)) {
    if (const auto* same = std::get_if<RegisterDatasetAnswer>(before)) {
      RETURN_IF_ERROR(CheckAnswer(txn.caller(), same->dataset_id));
      return *same;
    }
    return absl::InvalidArgumentError(
        "the request has the number of an earlier, different request");
  }
  ASSIGN_OR_RETURN(const std::string existing, FindExisting(state_, txn.caller(), request));
  RegisterDatasetAnswer registered{.dataset_id = existing, .existed = !existing.empty()};
  if (!registered.existed) {
    registered.dataset_id =
        request.dataset_id.empty() ? NewId(state_, request.name_space) : request.dataset_id;
    RETURN_IF_ERROR(CheckLimit(request, registered.dataset_id));
    txn.Apply(DatasetRegistered{std::make_shared<const DatasetRecord>(
        DatasetRecord{registered.dataset_id, request.definition, request.summary, options_.random(),
                      txn.caller() ? txn.caller()->name : ""})});
    txn.Audit("registered", {{"dataset", registered.dataset_id}});
    if (request.request.incarnation) txn.Apply(Answered{{request.request, registered}});
  }
  unused_since_.erase(registered.dataset_id);  // a client is about to read it
  return registered;
}

// Checks that the caller may know the answer to an earlier request with the same number.
absl::Status DatasetRegistry::CheckAnswer(const Caller& caller, const std::string& id) const {
  if (!caller.has_value()) return absl::OkStatus();
  const auto dataset = state_.FindDataset(id);
  if (dataset != nullptr) return Authorize(Action::kRegisterDataset, caller, *dataset);
  // Its owner is not known any more.
  return absl::NotFoundError("the dataset of this repeated request is no longer registered");
}

absl::Status DatasetRegistry::CheckLimit(const RegisterDatasetRequest& request,
                                         const std::string& id) const {
  const std::string_view name_space = NamespaceOf(id);
  int64_t bytes = state_.uses.Of(name_space).dataset_bytes;
  // `id` loses its definition. A job keeps the one that it began with.
  const auto there = state_.FindDataset(id);
  if (there != nullptr && state_.uses.HasOneReference(*there))
    bytes -= BytesOf(there->definition, there->summary);
  return options_.quotas.CheckDatasetBytes(name_space, bytes,
                                           BytesOf(request.definition, request.summary));
}

absl::StatusOr<std::shared_ptr<const DatasetRecord>> DatasetRegistry::Find(const Transaction& txn,
                                                                           const std::string& id,
                                                                           uint64_t edition) {
  std::shared_ptr<const DatasetRecord> found = state_.FindDataset(id, edition);
  if (found == nullptr) {
    RETURN_IF_ERROR(Authorize(Action::kGetDataset, txn.caller(), NamespaceOf(id)));
    return absl::NotFoundError(absl::StrCat("Dataset id ", id, " not found"));
  }
  RETURN_IF_ERROR(Authorize(Action::kGetDataset, txn.caller(), *found));
  unused_since_.erase(id);
  return found;
}

absl::Status DatasetRegistry::Unregister(Transaction& txn, const std::string& id) {
  const std::shared_ptr<const DatasetRecord> dataset = state_.FindDataset(id);
  if (dataset == nullptr) {
    RETURN_IF_ERROR(Authorize(Action::kUnregisterDataset, txn.caller(), NamespaceOf(id)));
    return absl::NotFoundError(absl::StrCat("Dataset id ", id, " not found"));
  }
  RETURN_IF_ERROR(Authorize(Action::kUnregisterDataset, txn.caller(), *dataset));
  for (const auto& [job_id, job] : state_.jobs) {
    if (job.dataset->id == id && !state_.IsOver(job)) {
      return absl::FailedPreconditionError(
          absl::StrCat("dataset ", id, " is read by job ", job.name, "; cancel the job first"));
    }
  }
  txn.Apply(DatasetUnregistered{id});
  txn.Audit("unregistered", {{"dataset", id}});
  return absl::OkStatus();
}

absl::Duration DatasetRegistry::GoesIn(const std::string& id, absl::Time now) const {
  const auto since = unused_since_.find(id);
  return since == unused_since_.end() ? absl::InfiniteDuration()
                                      : options_.dataset_ttl - (now - since->second);
}

void DatasetRegistry::CollectUnused(Transaction& txn, absl::Time now) {
  std::set<const DatasetRecord*> read;
  for (const auto& [id, job] : state_.jobs) read.insert(job.dataset.get());
  std::erase_if(unused_since_,
                [&](const auto& entry) { return state_.FindDataset(entry.first) == nullptr; });
  std::vector<std::string> old;
  for (const auto& [id, dataset] : state_.datasets) {
    if (read.contains(dataset.get())) {
      unused_since_.erase(id);
    } else if (now - unused_since_.try_emplace(id, now).first->second >= options_.dataset_ttl) {
      old.push_back(id);
    }
  }
  for (const std::string& id : old) {
    txn.Log("dataset_forgotten",
            {{"dataset", id},
             {"bytes", absl::StrCat(state_.FindDataset(id)->definition.size())},
             {"unused_for", absl::FormatDuration(now - unused_since_.at(id))}});
    txn.Apply(DatasetUnregistered{id});
  }
}

}  // namespace penstock::control
