// SPDX-License-Identifier: Apache-2.0
// Work of an engine that is pending in UCX. Used on the engine's thread only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dataplane/transfer/ucx/engine.h"

namespace penstock::transfer::ucx {

struct Engine::Sending final : Work {
  explicit Sending(Engine& its) : engine(its) {}
  void OnDone(const absl::Status& status) override;

  Engine& engine;
  Worker::Peer peer = 0;
  std::array<char, sizeof(Head) + kMaxInlineText> head;
  size_t head_bytes = 0;
  std::string long_head;  // in place of `head`, followed by a block's head
  std::string text;       // text that does not fit after the head
  Loan loan;
  bool announced = false;
};

struct Engine::Fetching final : Work {
  explicit Fetching(Engine& its) : engine(its) {}
  void OnDone(const absl::Status& status) override;

  Engine& engine;
  Worker::Peer peer = 0;
  Head head;
  Loan loan;
  std::optional<DevicePlace> place;  // on a device; `loan` then has only the head
  bool active = false;
  Clock::time_point deadline;
  absl::Status status;
};

struct Engine::Peer final : Work {
  explicit Peer(Engine& its) : engine(its) {}
  void OnDone(const absl::Status& status) override;

  Engine& engine;
  Worker::Peer number = 0;
  std::string name;
  std::vector<Worker::Lane> lanes;
  uint64_t dialler = 0;     // set for a peer that sent a greeting
  uint64_t connection = 0;  // the dialler's count of connections
  bool answered = false;    // a message from it has arrived
  Clock::time_point answer_by;
  bool closing = false;
  std::vector<Loan> quarantined;  // kept until the peer is closed
};

}  // namespace penstock::transfer::ucx
