// SPDX-License-Identifier: Apache-2.0
// One simulated process: a name, fibers, clocks and random numbers of its own.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "tools/simulator/engine/dice.h"

namespace penstock::simulator {

// The scheduler knows the fibers. Used on one thread. Lives until its last fiber has ended.
class Process {
 public:
  // `host`: the machine, on whose network and disk the process is. `number`: never 0, different for
  // each process and each life of one.
  Process(std::string host, std::string name, uint64_t number, Dice dice)
      : host_(std::move(host)), name_(std::move(name)), number_(number), dice_(dice) {}

  const std::string& host() const { return host_; }
  const std::string& name() const { return name_; }
  uint64_t number() const { return number_; }
  Dice& dice() { return dice_; }

  // After Kill() the process is a ghost: the network drops what it sends and what is sent to it,
  // its disk refuses everything, and nothing that it does counts. Its owner then ends it in the
  // usual way, so that nothing leaks. Its peers see a crash.
  void Kill() { alive_ = false; }
  bool alive() const { return alive_; }

  // While a process is paused, as by SIGSTOP, none of its fibers runs, and its clocks go on.
  void Pause() { paused_ = true; }
  void Continue() { paused_ = false; }
  bool paused() const { return paused_; }

  // The difference between the process's boot time or time of day and the world's time.
  void SetClocks(absl::Duration boot, absl::Duration wall) {
    boot_skew_ = boot;
    wall_skew_ = wall;
  }
  // By how many parts in 10^9 its clocks are too fast, since the world began; negative: too slow.
  // More than -10^9.
  void SetDrift(int64_t ppb) { drift_ppb_ = ppb; }
  // Returns the time that its clocks count while `of_world` passes.
  absl::Duration Counted(absl::Duration of_world) const {
    return drift_ppb_ == 0 ? of_world : of_world + of_world * drift_ppb_ / kBillion;
  }
  // Returns the time that passes until its clocks have counted `counted`, rounded up.
  absl::Duration Passing(absl::Duration counted) const {
    if (drift_ppb_ == 0) return counted;
    const absl::Duration passes = counted * kBillion / (kBillion + drift_ppb_);
    return Counted(passes) < counted ? passes + absl::Nanoseconds(1) : passes;
  }
  absl::Duration boot_skew() const { return boot_skew_; }
  absl::Duration wall_skew() const { return wall_skew_; }

 private:
  static constexpr int64_t kBillion = 1'000'000'000;

  const std::string host_;
  const std::string name_;
  const uint64_t number_;
  Dice dice_;
  bool alive_ = true;
  bool paused_ = false;
  absl::Duration boot_skew_;
  absl::Duration wall_skew_;
  int64_t drift_ppb_ = 0;
};

}  // namespace penstock::simulator
