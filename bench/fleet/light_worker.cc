// SPDX-License-Identifier: Apache-2.0
#include "bench/fleet/light_worker.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace penstock::bench {
namespace {

constexpr Index kBetweenBookmarks = 1000;  // elements
constexpr size_t kPositionBytes = 120;     // of a bookmark
constexpr int kNodes = 5;                  // of the dataset

bool SamePartition(const control::PlacedPartition& a, const control::PlacedPartition& b) {
  return a.iteration == b.iteration && a.partition == b.partition;
}

}  // namespace

control::WorkerHello LightWorker::Hello() {
  welcome_ = false;
  control::WorkerHello hello{.worker = WorkerId(number_),
                             .address = address_,
                             .permits = permits_,
                             .process = Incarnation(number_),
                             .heard = heard_};
  hello.offers = {{.protocol = "grpc", .address = address_, .preference = 2},
                  {.protocol = "tcp", .address = address_, .preference = 1}};
  for (const Held& held : held_) hello.held.push_back(held.of);
  return hello;
}

void LightWorker::OnMessage(const control::WorkerDown& message, uint64_t sequence,
                            std::vector<control::WorkerUp>& answers) {
  if (const auto* welcome = std::get_if<control::WorkerWelcome>(&message)) {
    if (heard_.life.journal != welcome->life.journal) held_.clear();
    heard_ = {welcome->life, 0};
    interval_ = shortest_interval_ = welcome->heartbeat_interval;
    welcome_ = true;
    for (Held& held : held_)  // sent again, as by Tasks::SayAgain()
      if (held.marked) answers.push_back(BookmarkOf(held));
  } else if (const auto* answer = std::get_if<control::WorkerHeartbeatAnswer>(&message)) {
    interval_ = std::max(shortest_interval_, answer->heartbeat_interval);
  } else if (const auto* assign = std::get_if<control::Assign>(&message)) {
    Take(*assign);
  } else if (const auto* unassign = std::get_if<control::Unassign>(&message)) {
    Drop(unassign->of);
  } else if (std::holds_alternative<control::Drained>(message)) {
    drained_ = true;
  } else if (const auto* refused = std::get_if<control::WorkerRefused>(&message)) {
    refused_ = refused->status;
  }
  heard_.sequence = std::max(heard_.sequence, sequence);
}

void LightWorker::Take(const control::Assign& assign) {
  const auto found = std::ranges::find_if(
      held_, [&](const Held& held) { return SamePartition(held.of, assign.of); });
  if (found == held_.end()) {
    held_.push_back({assign.of, assign.bookmark_index});
  } else if (found->of.placement < assign.of.placement) {
    *found = {assign.of, assign.bookmark_index};
  }
}

void LightWorker::Drop(const control::PlacedPartition& of) {
  std::erase_if(held_, [&](const Held& held) {
    return SamePartition(held.of, of) && held.of.placement <= of.placement;
  });
}

control::WorkerHeartbeat LightWorker::Beat() {
  ++beats_;
  control::WorkerHeartbeat beat{.counter = static_cast<uint64_t>(beats_)};
  control::DatasetWork& work = beat.work.emplace_back();
  work.dataset_id = "fleet";
  for (int node = 0; node < kNodes; ++node) {
    work.stats.nodes.push_back({.node = absl::StrCat("Node#", node),
                                .elements = beats_ * 100,
                                .bytes = beats_ * 1'000'000,
                                .busy = absl::Milliseconds(beats_ * 10)});
  }
  if (!held_.empty()) {
    beat.iterations.push_back({held_.front().of.iteration, beats_ * 100,
                               absl::Milliseconds(beats_ * 400),
                               static_cast<int32_t>(held_.size())});
  }
  return beat;
}

control::Bookmark LightWorker::BookmarkOf(Held& held) {
  held.marked = true;
  return {held.of, held.bookmark, std::string(kPositionBytes, 'b'), {}};
}

std::optional<control::WorkerUp> LightWorker::Progress() {
  if (held_.empty()) return std::nullopt;
  return NextBookmark(marked_++);
}

control::Bookmark LightWorker::NextBookmark(size_t place) {
  Held& held = held_[place % held_.size()];
  held.bookmark += kBetweenBookmarks;
  return BookmarkOf(held);
}

std::vector<control::Bookmark> LightWorker::FirstBookmarks() {
  std::vector<control::Bookmark> bookmarks;
  for (size_t i = 0; i < held_.size(); ++i)
    if (!held_[i].marked) bookmarks.push_back(NextBookmark(i));
  return bookmarks;
}

}  // namespace penstock::bench
