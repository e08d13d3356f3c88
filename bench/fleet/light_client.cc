// SPDX-License-Identifier: Apache-2.0
#include "bench/fleet/light_client.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace penstock::bench {
namespace {

constexpr int kIndexBits = 30;               // a client's range of indices is [n, n + 1) · 2^30
constexpr uint32_t kElementsPerReport = 10;  // of each partition
constexpr size_t kPartitionsPerReport = 4;
constexpr size_t kPartitionsRead = 64;  // partitions from which a client gets elements

}  // namespace

control::ClientHello LightClient::Hello() {
  welcome_ = false;
  names_all_links_ = true;
  return {.job = job_.job,
          .repetition = 0,
          .client = ClientId(number_),
          .incarnation = Incarnation(1),
          .state = std::nullopt,
          .process = Incarnation(number_ << 32),  // no worker's
          .token = job_.token,
          .heard = heard_};
}

void LightClient::OnMessage(const control::ClientDown& message, uint64_t sequence,
                            std::vector<control::ClientUp>& answers) {
  if (const auto* welcome = std::get_if<control::Welcome>(&message)) {
    OnWelcome(*welcome, answers);
  } else if (const auto* fence = std::get_if<control::Fence>(&message)) {
    Partition& partition = PartitionAt(fence->partition);
    partition.lowest = std::max(partition.lowest, static_cast<uint32_t>(fence->placement.value()));
    answers.push_back(control::FenceAnswer{
        {.partition = fence->partition, .placement = Placement(partition.lowest)}});
  } else if (const auto* membership = std::get_if<control::Membership>(&message)) {
    OnMembership(*membership);
  } else if (const auto* error = std::get_if<control::SessionError>(&message)) {
    refused_ = error->status;
  }
  heard_.sequence = std::max(heard_.sequence, sequence);
}

void LightClient::OnMembership(const control::Membership& membership) {
  const absl::StatusOr<std::vector<WorkerId>> altered = view_.Apply(membership);
  if (!altered.ok()) {
    refused_ = altered.status();
    return;
  }
  if (membership.since == 0 || membership.closed) served_.clear();
  for (const auto& named : membership.partitions) {
    const auto at = std::lower_bound(served_.begin(), served_.end(), named.partition);
    const bool was_served = at != served_.end() && *at == named.partition;
    const bool is_served = static_cast<bool>(view_.WorkerOf(named.partition));
    if (is_served && !was_served) served_.insert(at, named.partition);
    if (!is_served && was_served) served_.erase(at);
  }
  for (const WorkerId worker : *altered) {
    if (view_.IsPlaced(worker)) {
      if (links_.try_emplace(worker, 0).second) changed_links_.insert(worker);
    } else if (links_.erase(worker) > 0) {
      changed_links_.erase(worker);
      gone_links_.push_back(worker);
    }
  }
}

void LightClient::OnWelcome(const control::Welcome& welcome,
                            std::vector<control::ClientUp>& answers) {
  heard_ = {welcome.life, 0};
  interval_ = welcome.heartbeat_interval;
  welcome_ = true;
  control::Report report{.partitions = {}, .rounds = std::nullopt, .complete = welcome.partial};
  for (const control::Fence& placed : welcome.placements) {
    Partition& partition = PartitionAt(placed.partition);
    partition.lowest = std::max(partition.lowest, static_cast<uint32_t>(placed.placement.value()));
  }
  auto named = welcome.placements.begin();  // in ascending order
  for (const Partition& partition : partitions_) {
    const bool is_named = named != welcome.placements.end() && named->partition == partition.id;
    if (is_named) ++named;
    if (!is_named && partition.delivered == 0) continue;
    report.partitions.push_back({.partition = partition.id,
                                 .placement = Placement(partition.lowest),
                                 .delivered = DeliveredOf(partition),
                                 .received = {},
                                 .whole = true});
  }
  answers.push_back(std::move(report));
}

LightClient::Partition& LightClient::PartitionAt(PartitionId partition) {
  const auto at = std::ranges::lower_bound(partitions_, partition, {}, &Partition::id);
  if (at != partitions_.end() && at->id == partition) return *at;
  return *partitions_.insert(at, {.id = partition});
}

IndexSet LightClient::DeliveredOf(const Partition& partition) const {
  if (partition.delivered == 0) return {};
  const auto first = static_cast<Index>(number_ << kIndexBits);
  return IndexSet::Of(first, first + partition.delivered);
}

control::ClientHeartbeat LightClient::Beat() {
  ++beats_;
  const auto count = static_cast<int64_t>(beats_);
  control::ClientHeartbeat beat{.counter = beats_};
  const auto add = [&](WorkerId worker, int64_t elements) {
    beat.links.push_back({.worker = worker,
                          .protocol = "tcp",
                          .reason = "tcp: another host",
                          .open = true,
                          .elements = elements,
                          .bytes = elements * 100'000,
                          .credits = 2});
  };
  beat.only_changed_links = !std::exchange(names_all_links_, false);
  if (beat.only_changed_links) {
    for (const WorkerId worker : changed_links_) add(worker, links_.at(worker));
    beat.gone_links = gone_links_;
  } else {
    for (const auto& [worker, elements] : links_) add(worker, elements);
  }
  changed_links_.clear();
  gone_links_.clear();
  beat.steps = {count * 100, absl::Milliseconds(count * 900), absl::Milliseconds(count * 100)};
  return beat;
}

std::optional<control::ClientUp> LightClient::Progress() {
  if (served_.empty()) return std::nullopt;
  return NextReport();
}

control::Report LightClient::NextReport() {
  control::Report report;
  const size_t read = std::min(served_.size(), kPartitionsRead);
  for (size_t i = 0; i < std::min(read, kPartitionsPerReport); ++i) {
    const size_t turn = (reports_ * kPartitionsPerReport + i) % read;
    const PartitionId id = served_[(number_ * kPartitionsRead + turn) % served_.size()];
    Partition& partition = PartitionAt(id);
    const auto next =
        static_cast<Index>(number_ << kIndexBits) + static_cast<Index>(partition.delivered);
    partition.delivered += kElementsPerReport;
    if (const auto link = links_.find(view_.WorkerOf(id)); link != links_.end()) {
      link->second += kElementsPerReport;
      changed_links_.insert(link->first);
    }
    report.partitions.push_back({.partition = id,
                                 .placement = Placement(partition.lowest),
                                 .delivered = IndexSet::Of(next, next + kElementsPerReport),
                                 .received = {}});
  }
  ++reports_;
  return report;
}

}  // namespace penstock::bench
