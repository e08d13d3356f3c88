// SPDX-License-Identifier: Apache-2.0
#include "control/state/namespace_use.h"

#include <utility>

#include "control/protocol/invariant.h"
#include "control/protocol/scoped_name.h"
#include "control/state/state.h"

namespace penstock::control {

NamespaceUse NamespaceUses::Of(std::string_view name_space) const {
  const auto found = of_.find(name_space);
  return found == of_.end() ? NamespaceUse() : found->second;
}

bool NamespaceUses::HasOneReference(const DatasetRecord& dataset) const {
  const auto found = references_.find(&dataset);
  return found != references_.end() && found->second == 1;
}

void NamespaceUses::SetJob(const JobRecord& job, OfJob use) {
  OfJob& kept = jobs_[job.id];
  Add(NamespaceOf(job.name), {.jobs = int64_t{use.unfinished} - int64_t{kept.unfinished},
                              .clients = static_cast<int64_t>(use.reads.size()) -
                                         static_cast<int64_t>(kept.reads.size())});
  kept = std::move(use);
  if (kept == OfJob()) jobs_.erase(job.id);
}

void NamespaceUses::AddReads(const JobRecord& job, ClientId client, int more) {
  if (more == 0) return;
  OfJob& kept = jobs_[job.id];
  int& reads = kept.reads[client];
  const bool before = reads > 0;
  reads += more;
  Add(NamespaceOf(job.name), {.clients = int64_t{reads > 0} - int64_t{before}});
  if (reads == 0) kept.reads.erase(client);
  if (kept == OfJob()) jobs_.erase(job.id);
}

void NamespaceUses::AddReference(const DatasetRecord& dataset) {
  if (++references_[&dataset] > 1) return;
  Add(NamespaceOf(dataset.id), {.dataset_bytes = BytesOf(dataset.definition, dataset.summary)});
}

void NamespaceUses::DropReference(const DatasetRecord& dataset) {
  const auto references = references_.find(&dataset);
  PENSTOCK_INVARIANT(references != references_.end());
  if (--references->second > 0) return;
  references_.erase(references);
  Add(NamespaceOf(dataset.id), {.dataset_bytes = -BytesOf(dataset.definition, dataset.summary)});
}

void NamespaceUses::Add(std::string_view name_space, const NamespaceUse& more) {
  const auto its = of_.try_emplace(std::string(name_space)).first;
  its->second.jobs += more.jobs;
  its->second.clients += more.clients;
  its->second.dataset_bytes += more.dataset_bytes;
  if (its->second == NamespaceUse()) of_.erase(its);
}

int64_t BytesOf(std::string_view definition, const DatasetSummary& summary) {
  size_t bytes = definition.size() + summary.spec_text.size();
  for (const NodeFingerprint& node : summary.nodes) bytes += sizeof(node) + node.name.size();
  for (const SplitProvider& provider : summary.plan) {
    bytes += sizeof(provider) + provider.node.size();
    for (const std::string& file : provider.files) bytes += sizeof(file) + file.size();
  }
  return static_cast<int64_t>(bytes);
}

NamespaceUses::OfJob State::UseOf(const JobRecord& job) const {
  NamespaceUses::OfJob use{.unfinished = !IsOver(job), .reads = {}};
  for (const IterationId id : IterationsOf(job.id)) {
    const IterationState& iteration = iterations.at(id);
    if (!GoesOn(iteration) || iteration.record.finished) continue;
    for (const protocol::ReaderRecord& reader : iteration.record.readers)
      if (reader.status == protocol::ReaderStatus::kActive) ++use.reads[reader.client];
  }
  return use;
}

NamespaceUses State::ComputeUses() const {
  NamespaceUses computed;
  for (const auto& [id, dataset] : datasets) computed.AddReference(*dataset);
  for (const auto& [id, job] : jobs) {
    computed.AddReference(*job.dataset);
    computed.SetJob(job, UseOf(job));
  }
  return computed;
}

}  // namespace penstock::control
