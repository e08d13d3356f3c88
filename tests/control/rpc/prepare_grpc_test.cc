// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/prepare_grpc.h"

#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

int64_t ResidentKib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::atoll(line.c_str() + sizeof("RssAnon:"));
  return 0;
}

TEST(PrepareGrpc, NothingStaysOfMutexesThatAreFreedWithoutTheirDestructors) {
  PrepareGrpc();
  constexpr size_t kMutexes = 100'000;
  const auto places =
      std::make_unique<std::array<std::byte, sizeof(absl::Mutex)>[]>(kMutexes);  // uses the mutexes
  const int64_t before = ResidentKib();
  for (size_t i = 0; i < kMutexes; ++i) {
    auto* mutex = new (&places[i]) absl::Mutex;
    mutex->Lock();
    mutex->Unlock();
  }
  EXPECT_LT(ResidentKib() - before, 4096);
}

}  // namespace
}  // namespace penstock::control
