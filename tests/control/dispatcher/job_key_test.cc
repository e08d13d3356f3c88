// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/job_key.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>

#include "control/env/fake_disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kNonce[] = "0123456789abcdef0123456789abcdef";

// Returns a config with an empty folder as its work_dir.
DispatcherConfig InEmptyFolder() {
  const std::string folder = ::testing::TempDir() + "/job_key";
  fs::remove_all(folder);
  fs::create_directories(folder);
  return {.work_dir = folder, .fault_tolerant_mode = true};
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

TEST(JobTokens, AreTheFirst128BitsOfTheHmac) {
  const JobTokens tokens = TokensWith(std::string(kJobKeyBytes, 'k'));
  // From Python's hmac module.
  EXPECT_EQ(tokens.make(kNonce), "05a98ed15efb1f6b1417f893f99e45fb");
  EXPECT_EQ(tokens.key_id, 0x08ea64f908b4b791u);
}

TEST(JobTokens, DifferForEachNonceAndEachKey) {
  std::set<std::string> made;
  std::set<uint64_t> ids;
  for (int i = 0; i < 100; ++i) {
    const JobTokens tokens = TokensWith(DrawJobKey());
    ids.insert(tokens.key_id);
    made.insert(tokens.make(kNonce));
    made.insert(tokens.make("another"));
    EXPECT_EQ(tokens.make(kNonce), tokens.make(kNonce));
    EXPECT_EQ(tokens.make(kNonce).find(':'), std::string::npos);
  }
  EXPECT_EQ(made.size(), 200u);
  EXPECT_EQ(ids.size(), 100u);
}

TEST(JobKey, IsMadeForItsOwnerOnlyAndReadAgain) {
  const DispatcherConfig config = InEmptyFolder();
  const std::string path = config.work_dir + "/key";
  Write(path + ".new", "of a start that was killed");
  fs::permissions(path + ".new", fs::perms::all);
  const mode_t mask = umask(0);
  const absl::StatusOr<JobTokens> made = OpenJobKey(config, 0);
  umask(mask);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(std::distance(fs::directory_iterator(config.work_dir), {}), 1);
  const absl::StatusOr<JobTokens> again = OpenJobKey(config, made->key_id);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->make(kNonce), made->make(kNonce));
}

TEST(JobKey, IsInTheFileOfTheSetting) {
  DispatcherConfig config = InEmptyFolder();
  config.journal_key_file = config.work_dir + "/elsewhere";
  ASSERT_TRUE(OpenJobKey(config, 0).ok());
  EXPECT_TRUE(fs::exists(config.journal_key_file));
  EXPECT_FALSE(fs::exists(config.work_dir + "/key"));
  config.journal_key_file = config.work_dir + "/none/key";
  EXPECT_THAT(std::string(OpenJobKey(config, 0).status().message()),
              HasSubstr(config.journal_key_file));
}

TEST(JobKey, ThatIsNeededIsNotMadeAnew) {
  const DispatcherConfig config = InEmptyFolder();
  const std::string path = config.work_dir + "/key";
  const auto names_the_ways_out =
      AllOf(HasSubstr(path), HasSubstr("put back"), HasSubstr("journal_key_file"),
            HasSubstr("penstock journal repair --forget-key " + config.work_dir));
  const absl::Status missing = OpenJobKey(config, 5).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), AllOf(HasSubstr("missing"), names_the_ways_out));
  EXPECT_FALSE(fs::exists(path));

  const uint64_t id = OpenJobKey(config, 0)->key_id;
  const absl::Status other = OpenJobKey(config, id + 1).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(other)) << other;
  EXPECT_THAT(std::string(other.message()), AllOf(HasSubstr("another key"), names_the_ways_out));
  EXPECT_EQ(OpenJobKey(config, id)->key_id, id) << "the file must stay";
}

TEST(JobKey, HasOnlyItsDigits) {
  const DispatcherConfig config = InEmptyFolder();
  const std::string path = config.work_dir + "/key";
  const std::string digits(2 * kJobKeyBytes, 'a');
  for (const std::string& wrong : {std::string(), std::string("\n"), digits.substr(1), digits + "a",
                                   "g" + digits.substr(1), digits + "\n\n"}) {
    Write(path, wrong);
    const absl::Status refused = OpenJobKey(config, 0).status();
    EXPECT_TRUE(absl::IsDataLoss(refused)) << refused << " for " << wrong;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(path));
  }
  for (const std::string& right : {digits, digits + "\n"}) {
    Write(path, right);
    EXPECT_TRUE(OpenJobKey(config, 0).ok()) << right;
  }
}

// A record may follow as soon as OpenJobKey() has returned, so the key must then be durable.
TEST(JobKey, IsWholeOrAbsentAfterALossOfPower) {
  const DispatcherConfig config{.work_dir = "/journal"};
  std::mt19937_64 random(7);
  bool made = false;
  for (int64_t at = 0; !made; ++at) {
    FakeDisk disk;
    ASSERT_TRUE(disk.MakeFolders(config.work_dir).ok());
    disk.FailAt(disk.operations() + at, absl::UnavailableError("no power"), /*for_good=*/true);
    const absl::StatusOr<JobTokens> tokens = OpenJobKey(config, 0, disk);
    made = tokens.ok();
    disk.LosePower(random);
    const absl::StatusOr<JobTokens> later = OpenJobKey(config, made ? tokens->key_id : 0, disk);
    EXPECT_TRUE(later.ok()) << later.status() << " after operation " << at;
  }
}

}  // namespace
}  // namespace penstock::control
