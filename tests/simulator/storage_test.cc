// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/world/storage.h"

#include <array>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/simulator/one_process.h"

namespace penstock::simulator {
namespace {

using ::testing::ElementsAre;

TEST(Storage, ReadsWhatWasPutAndTakesTime) {
  OneProcess world;
  Storage storage(world.scheduler);
  storage.Put("/storage/a", "0123456789");
  storage.Put("/storage/b", "");
  world.Start("reads", [&] {
    const std::unique_ptr<File> file = storage.Open("/storage/a").value();
    const absl::Time opened = world.scheduler.now();
    EXPECT_GT(opened, AtSecond(0));
    std::array<char, 4> bytes;
    EXPECT_EQ(file->ReadAt(3, absl::MakeSpan(bytes)).value(), 4u);
    EXPECT_EQ(std::string_view(bytes.data(), bytes.size()), "3456");
    EXPECT_GT(world.scheduler.now(), opened);
    EXPECT_EQ(file->ReadAt(8, absl::MakeSpan(bytes)).value(), 2u);
    EXPECT_EQ(storage.Open("/storage/c").status().code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(storage.Glob("/storage/*").value(), ElementsAre("/storage/a", "/storage/b"));
  });
  world.Run();
}

}  // namespace
}  // namespace penstock::simulator
