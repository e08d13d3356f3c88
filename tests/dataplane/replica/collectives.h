// SPDX-License-Identifier: Apache-2.0
// Host communicators, for tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/replica/collective/host_collective.h"
#include "dataplane/replica/collective/rank_processes.h"
#include "dataplane/transfer/tcp/socket.h"

namespace penstock::replica {

using Collectives = std::vector<std::unique_ptr<Collective>>;

// Returns an address at which nobody listened a moment ago.
inline std::string FreeAddress() {
  absl::StatusOr<transfer::tcp::Bound> bound = transfer::tcp::ListenAt({"127.0.0.1", 0});
  EXPECT_TRUE(bound.ok()) << bound.status();
  return absl::StrCat("127.0.0.1:", bound->port);
}

// Calls fn(rank) on one thread per rank; returns when all have returned.
inline void OnRanks(int ranks, const std::function<void(int)>& fn) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(fn, rank);
  for (std::thread& thread : threads) thread.join();
}

// Connects as many ranks as if they were processes, over loopback.
inline Collectives CollectiveOfConnections(int ranks) {
  Collectives all(static_cast<size_t>(ranks));
  const std::string address = FreeAddress();
  OnRanks(ranks, [&](int rank) {
    auto one = ConnectRanks({.address = address, .rank = rank, .ranks = ranks});
    EXPECT_TRUE(one.ok()) << one.status();
    if (one.ok()) all[static_cast<size_t>(rank)] = *std::move(one);
  });
  return all;
}

}  // namespace penstock::replica
