// SPDX-License-Identifier: Apache-2.0
// The control side of a worker without its data side: it answers the dispatcher as a worker does
// (dataplane/worker/agent.h, tasks.h), but computes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/protocol/worker_messages.h"

namespace penstock::bench {

// One thread at a time calls it. The caller owns the stream: it sends what the methods return.
class LightWorker {
 public:
  // `number`: from 1, and different for each worker of the fleet. `permits`: partitions that it
  // computes at once. `address`: "host:port"; the dispatcher may try to connect to it.
  LightWorker(uint64_t number, int permits, std::string address)
      : number_(number), permits_(permits), address_(std::move(address)) {}

  // The first message of each stream; the worker is not welcome until the answer.
  control::WorkerHello Hello();
  // Takes a message, and appends those that answer it to `answers`. `sequence`: as in
  // control::SessionEvents.
  void OnMessage(const control::WorkerDown& message, uint64_t sequence,
                 std::vector<control::WorkerUp>& answers);
  control::WorkerHeartbeat Beat();
  // The stream broke.
  void OnLost() { welcome_ = false; }
  // Returns a message of a worker that computes: a bookmark; nullopt if it has no partition.
  std::optional<control::WorkerUp> Progress();
  // Returns a bookmark further on in the partition `place` % the number of its partitions.
  // REQUIRES: holds_any().
  control::Bookmark NextBookmark(size_t place);
  // Returns a bookmark of each partition that has none since it was placed here.
  std::vector<control::Bookmark> FirstBookmarks();

  uint64_t number() const { return number_; }
  bool welcome() const { return welcome_; }
  // The dispatcher's term at the latest welcome.
  uint64_t term() const { return heard_.life.term.value(); }
  absl::Duration interval() const { return interval_; }  // of heartbeats, once welcome
  bool drained() const { return drained_; }
  bool holds_any() const { return !held_.empty(); }
  int64_t partitions() const { return static_cast<int64_t>(held_.size()); }
  // Not OK: the dispatcher refused the worker, for example because it had declared it dead.
  const absl::Status& refused() const { return refused_; }

 private:
  struct Held {
    control::PlacedPartition of;
    Index bookmark = 0;
    bool marked = false;  // a bookmark was sent under this placement
  };
  control::Bookmark BookmarkOf(Held& held);
  void Take(const control::Assign& assign);
  void Drop(const control::PlacedPartition& of);

  const uint64_t number_;
  const int permits_;
  const std::string address_;
  std::vector<Held> held_;
  control::Heard heard_;
  int64_t beats_ = 0;
  size_t marked_ = 0;  // calls of Progress() that returned a bookmark
  absl::Duration shortest_interval_, interval_;
  bool welcome_ = false;
  bool drained_ = false;
  absl::Status refused_;
};

}  // namespace penstock::bench
