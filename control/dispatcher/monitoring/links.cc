// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/monitoring/links.h"

#include <algorithm>
#include <utility>

#include "control/dispatcher/messages/texts.h"
#include "control/dispatcher/monitoring/counters.h"

namespace penstock::control {
namespace {

// The number of protocols that have a label of their own in metrics. Transports outside the tree
// choose their names.
constexpr size_t kMaxLabels = 32;
// The bound of a text that a client sends about a link.
constexpr size_t kMaxReasonBytes = 4096;
// The links that are kept of one session: more than a service has workers. Clients choose the
// numbers of the workers that they name.
constexpr size_t kMaxSessionLinks = 1 << 14;

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

void Links::Begin(const Key& key, Incarnation incarnation, uint64_t stream) {
  Session& session = sessions_[key];
  if (session.incarnation != incarnation) session = {.incarnation = incarnation};
  session.stream = stream;
  session.whole = false;
}

bool Links::Heard(const Key& key, uint64_t stream, ClientHeartbeat& heartbeat, absl::Time now) {
  const auto found = sessions_.find(key);
  if (found == sessions_.end() || found->second.stream != stream) return false;
  Session& session = found->second;
  if (heartbeat.only_changed_links && !session.whole) return false;
  session.before = std::exchange(session.last, now);
  ++session.reports;
  for (const WorkerId gone : heartbeat.gone_links) session.links.erase(gone);
  for (LinkCounts& link : heartbeat.links) Take(session, link);
  if (!heartbeat.only_changed_links) {
    std::erase_if(session.links,
                  [&](const auto& link) { return link.second.report != session.reports; });
  }
  session.whole = true;
  return true;
}

void Links::Take(Session& session, LinkCounts& counts) {
  if (session.links.size() >= kMaxSessionLinks && !session.links.contains(counts.worker)) return;
  Link& link = session.links[counts.worker];
  if (link.report == session.reports) return;  // named twice
  link.report = session.reports;
  Cut(counts.protocol, kMaxProtocolBytes);
  Cut(counts.reason, kMaxReasonBytes);
  if (!counts.protocol.empty()) {  // otherwise the link was never open
    // The numbers are not trusted: a decrease counts as nothing new.
    CountLink(LabelOf(counts.protocol),
              std::max<int64_t>(0, counts.elements - link.counts.elements),
              std::max<int64_t>(0, counts.bytes - link.counts.bytes));
  }
  link.elements_before = link.counts.elements;
  link.bytes_before = link.counts.bytes;
  link.counts = std::move(counts);
}

std::vector<LinkStatus> Links::Of(const Key& key) const {
  std::vector<LinkStatus> links;
  const auto found = sessions_.find(key);
  if (found == sessions_.end()) return links;
  const Session& session = found->second;
  const absl::Duration time = session.last - session.before;
  const double seconds = time < absl::InfiniteDuration() ? absl::ToDoubleSeconds(time) : 0;
  for (const auto& [worker, link] : session.links) {
    LinkStatus& status = links.emplace_back();
    status.iteration = key.first;
    status.client = key.second;
    status.counts = link.counts;
    // A link that the last report did not name has received nothing since the report before.
    if (seconds <= 0 || link.report != session.reports) continue;
    status.elements_per_s =
        static_cast<double>(link.counts.elements - link.elements_before) / seconds;
    status.bytes_per_s = static_cast<double>(link.counts.bytes - link.bytes_before) / seconds;
  }
  return links;
}

bool Links::Has(const Key& key, WorkerId worker) const {
  const auto found = sessions_.find(key);
  return found != sessions_.end() && found->second.links.contains(worker);
}

size_t Links::NumOf(const Key& key) const {
  const auto found = sessions_.find(key);
  return found == sessions_.end() ? 0 : found->second.links.size();
}

}  // namespace penstock::control
