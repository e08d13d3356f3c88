// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/monitoring/links.h"

#include <algorithm>
#include <utility>

#include "control/dispatcher/messages/texts.h"
#include "control/dispatcher/monitoring/counters.h"

namespace penstock::control {
namespace {

// Returns the counts of the link to that worker; zeros if there was no such link. `counts` are
// sorted by worker.
LinkCounts CountsOf(const std::vector<LinkCounts>& counts, WorkerId worker) {
  const auto found = std::ranges::lower_bound(counts, worker, {}, &LinkCounts::worker);
  return found == counts.end() || found->worker != worker ? LinkCounts{} : *found;
}

// The number of protocols that have a label of their own in metrics. Transports outside the tree
// choose their names.
constexpr size_t kMaxLabels = 32;
// The bound of a text that a client sends about a link.
constexpr size_t kMaxReasonBytes = 4096;

void Cut(std::string& text, size_t bytes) {
  if (text.size() > bytes) text = text.substr(0, bytes);
}

}  // namespace

std::string Links::LabelOf(const std::string& protocol) {
  if (labels_.contains(protocol)) return protocol;
  if (labels_.size() == kMaxLabels) return "other";
  labels_.insert(protocol);
  return protocol;
}

void Links::Heard(const Key& key, Incarnation incarnation, std::vector<LinkCounts> counts,
                  absl::Time now) {
  Session& session = sessions_[key];
  if (session.incarnation != incarnation) session = {.incarnation = incarnation};
  std::ranges::stable_sort(counts, {}, &LinkCounts::worker);
  const auto same = [](const LinkCounts& a, const LinkCounts& b) { return a.worker == b.worker; };
  counts.erase(std::unique(counts.begin(), counts.end(), same), counts.end());
  for (LinkCounts& link : counts) {
    Cut(link.protocol, kMaxProtocolBytes);
    Cut(link.reason, kMaxReasonBytes);
    if (link.protocol.empty()) continue;  // the link was never open
    const LinkCounts before = CountsOf(session.last.counts, link.worker);
    // The numbers are not trusted: a decrease counts as nothing new.
    CountLink(LabelOf(link.protocol), std::max<int64_t>(0, link.elements - before.elements),
              std::max<int64_t>(0, link.bytes - before.bytes));
  }
  session.before = std::exchange(session.last, {now, std::move(counts)});
}

std::vector<LinkStatus> Links::Of(const Key& key) const {
  std::vector<LinkStatus> links;
  const auto found = sessions_.find(key);
  if (found == sessions_.end()) return links;
  const auto& [incarnation, last, before] = found->second;
  const absl::Duration time = last.at - before.at;
  const double seconds = time < absl::InfiniteDuration() ? absl::ToDoubleSeconds(time) : 0;
  for (const LinkCounts& link : last.counts) {
    LinkStatus& status = links.emplace_back();
    status.iteration = key.first;
    status.client = key.second;
    status.counts = link;
    if (seconds <= 0) continue;
    const LinkCounts then = CountsOf(before.counts, link.worker);
    status.elements_per_s = static_cast<double>(link.elements - then.elements) / seconds;
    status.bytes_per_s = static_cast<double>(link.bytes - then.bytes) / seconds;
  }
  return links;
}

size_t Links::NumOf(const Key& key) const {
  const auto found = sessions_.find(key);
  return found == sessions_.end() ? 0 : found->second.last.counts.size();
}

}  // namespace penstock::control
