// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/engine/node_iterator.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/element_views.h"
#include "dataplane/dataset/engine/replay_point.h"
#include "dataplane/dataset/engine/states_of_ranks.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/graph/fingerprint.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/position_versions.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/memory/catch_exhausted.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// Returns two bytes of each node's own fingerprint, in topological order. They show which nodes
// differ if the fingerprints of the whole datasets differ.
std::string NodeMarks(const Dataset::Node& root) {
  std::string marks;
  VisitNodes(root, [&](const Dataset::Node& node, int) {
    const uint64_t own = OwnFingerprintOf(node);
    marks.push_back(static_cast<char>(own));
    marks.push_back(static_cast<char>(own >> 8));
  });
  return marks;
}

// OK if all nodes that differ are in `allow`; otherwise the error names the nodes that are not.
absl::Status CheckMarks(const Dataset::Node& root, std::string_view marks,
                        absl::Span<const std::string> allow) {
  const std::string own = NodeMarks(root);
  if (own.size() != marks.size()) {
    std::string first;  // the first node of this dataset that differs
    VisitNodes(root, [&](const Dataset::Node& node, int number) {
      const size_t at = 2 * static_cast<size_t>(number);
      const bool same = at < marks.size() && own.compare(at, 2, marks, at, 2) == 0;
      if (first.empty() && !same)
        first = absl::StrCat("; they differ from ", NodeName(node, number), " on");
    });
    return absl::InvalidArgumentError(absl::StrCat(
        "the saved position belongs to a different dataset: that one has ", marks.size() / 2,
        " nodes, this one ", own.size() / 2, first, "; an edit must not add or remove nodes"));
  }
  std::vector<std::string> differ, refused;
  VisitNodes(root, [&](const Dataset::Node& node, int number) {
    const size_t at = 2 * static_cast<size_t>(number);
    if (own.compare(at, 2, marks, at, 2) == 0) return;
    differ.push_back(NodeName(node, number));
    if (std::find(allow.begin(), allow.end(), differ.back()) == allow.end()) {
      refused.push_back(differ.back());
    }
  });
  if (refused.empty() && !differ.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the saved position belongs to a different dataset: ",
      refused.empty() ? "its nodes are connected differently"
                      : absl::StrCat("the nodes that differ are ", absl::StrJoin(refused, ", ")),
      "; continue with the dataset that it was saved from",
      refused.empty() ? "" : ", or allow them by name (RestoreOptions::allow)"));
}

}  // namespace

absl::StatusOr<bool> NodeIterator::NextInto(ResultSink& sink) {
  ASSIGN_OR_RETURN(const std::optional<Element> element, Next());
  if (!element.has_value()) return false;
  for (size_t i = 0; i < element->size(); ++i) RETURN_IF_ERROR(sink.Copy(i, element->tensor(i)));
  return true;
}

absl::StatusOr<bool> NodeIterator::NextViews(ElementViews& views) {
  ASSIGN_OR_RETURN(std::optional<Element> next, Next());
  if (!next.has_value()) return false;
  views.Add(*std::move(next));
  return true;
}

absl::StatusOr<int64_t> NodeIterator::Skip(int64_t count) {
  for (int64_t passed = 0; passed < count; ++passed) {
    absl::StatusOr<std::optional<Element>> element = Next();
    // An error takes the place of an element and is skipped like one.
    if (absl::IsCancelled(element.status()) || IsExhausted(element.status()))
      return element.status();
    if (element.ok() && !element->has_value()) return passed;
  }
  return count;
}

uint64_t CommitListeners::Add(Listener listener) {
  MutexLock lock(mu_);
  listeners_.emplace(++last_id_, std::move(listener));
  return last_id_;
}

void CommitListeners::Remove(uint64_t id) {
  MutexLock lock(mu_);
  listeners_.erase(id);
}

absl::Status CommitListeners::Commit(uint64_t save) {
  MutexLock lock(mu_);
  absl::Status first;
  for (const auto& [id, listener] : listeners_) first.Update(listener(save));
  return first;
}

void CommitListeners::AddEnd(EndListener listener) {
  MutexLock lock(mu_);
  end_listeners_.push_back(std::move(listener));
}

absl::Status CommitListeners::AwaitEnd() {
  std::vector<EndListener> listeners;  // called without the lock, because they wait
  {
    MutexLock lock(mu_);
    listeners = end_listeners_;
  }
  for (const EndListener& listener : listeners) RETURN_IF_ERROR(listener());
  return absl::OkStatus();
}

void CommitListeners::AddStop(StopListener listener) {
  MutexLock lock(mu_);
  stop_listeners_.push_back(std::move(listener));
}

void CommitListeners::Stop(absl::Duration bound) {
  std::vector<StopListener> listeners;  // called without the lock, because they wait
  {
    MutexLock lock(mu_);
    listeners = stop_listeners_;
  }
  for (const StopListener& listener : listeners) listener(bound);
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildIterator(const Dataset& dataset,
                                                            const RunContext& context) {
  RETURN_IF_ERROR(CheckStandsAlone(dataset));
  return BuildSite::Root(NodeOf(dataset), context).Build();
}

static absl::StatusOr<StateWriter> Written(NodeIterator& iterator, const Dataset& dataset,
                                           uint64_t save) {
  StateWriter writer(save);
  writer.WriteUnsigned(kPositionVersion);
  writer.WriteUnsigned(dataset.fingerprint());
  writer.WriteString(NodeMarks(*NodeOf(dataset)));
  RETURN_IF_ERROR(iterator.Save(writer));
  return writer;
}

absl::StatusOr<std::string> SaveIterator(NodeIterator& iterator, const Dataset& dataset,
                                         uint64_t save) {
  ASSIGN_OR_RETURN(StateWriter writer, Written(iterator, dataset, save));
  return std::move(writer).Take();
}

absl::StatusOr<ReplayPoint> SaveForReplay(NodeIterator& iterator, const Dataset& dataset) {
  ASSIGN_OR_RETURN(StateWriter writer, Written(iterator, dataset, 0));
  ReplayPoint point{.position = {}, .splits = writer.splits_needed()};
  point.position = std::move(writer).Take();
  return point;
}

absl::Status RestoreIterator(NodeIterator& iterator, const Dataset& dataset,
                             std::string_view bytes) {
  return RestoreEdited(iterator, dataset, bytes, {});
}

absl::Status RestoreEdited(NodeIterator& iterator, const Dataset& dataset, std::string_view bytes,
                           absl::Span<const std::string> allow) {
  StateReader reader(bytes);
  ASSIGN_OR_RETURN(const uint64_t version, reader.ReadUnsigned());
  if (version < kOldestPosition || version > kPositionVersion) {
    return absl::FailedPreconditionError(absl::StrCat("a saved position has version ", version,
                                                      "; this program reads ", kOldestPosition,
                                                      " to ", kPositionVersion));
  }
  ASSIGN_OR_RETURN(const uint64_t fingerprint, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(const std::string_view marks, reader.ReadString());
  if (fingerprint != dataset.fingerprint()) {
    RETURN_IF_ERROR(CheckMarks(*NodeOf(dataset), marks, allow));
  }
  RETURN_IF_ERROR(iterator.Restore(reader));
  return reader.ExpectEnd();
}

}  // namespace penstock
