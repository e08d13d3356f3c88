// SPDX-License-Identifier: Apache-2.0
// Time and channels of a schedule (tests/control/protocol/schedule.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

namespace penstock::protocol::schedule {

// A clock that jumps to the next event.
class Clock {
 public:
  explicit Clock(uint64_t seed) : random_(seed) {}
  int64_t now() const { return now_; }
  void At(int64_t when, std::function<void()> what) {
    queue_.push({std::max(when, now_), count_++, std::move(what)});
  }
  void After(int64_t delay, std::function<void()> what) { At(now_ + delay, std::move(what)); }
  bool Step() {
    if (queue_.empty()) return false;
    Event event = queue_.top();
    queue_.pop();
    now_ = event.when;
    event.what();
    return true;
  }
  int64_t Draw(int64_t low, int64_t high) {  // both included
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool OneIn(int64_t n) { return Draw(1, n) == 1; }
  int64_t count() const { return static_cast<int64_t>(count_); }

 private:
  struct Event {
    int64_t when;
    uint64_t order;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return std::tie(other.when, other.order) < std::tie(when, order);
    }
  };
  std::mt19937_64 random_;
  int64_t now_ = 0;
  uint64_t count_ = 0;
  std::priority_queue<Event> queue_;
};

// One direction between two processes: in order, delayed, sometimes twice; delivers nothing once it
// is broken.
class Pipe {
 public:
  void Send(Clock& clock, const std::function<void()>& deliver) {
    const int copies = clock.OneIn(40) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      last_ = std::max(last_, clock.now() + clock.Draw(1, clock.OneIn(20) ? 100 : 8));
      clock.At(last_, [deliver, life = life_, mine = *life_] {
        if (*life == mine) deliver();
      });
    }
  }
  void Break() { ++*life_; }

 private:
  int64_t last_ = 0;
  std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace penstock::protocol::schedule
