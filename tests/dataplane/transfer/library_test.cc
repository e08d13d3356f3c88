// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/library.h"

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::transfer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Says(const absl::Status& status) {
  return std::string(status.message());
}

TEST(TransportLibraryTest, ItsTransportIsFoundByName) {
  ASSERT_TRUE(LoadTransports({CARRIER}).ok()) << LoadTransports({CARRIER});
  auto transport = FindTransport("carrier");
  ASSERT_TRUE(transport.ok()) << transport.status();
  EXPECT_EQ((*transport)->Listen({}, {}).status(), absl::NotFoundError("no roof"));
  EXPECT_TRUE(LoadTransports({CARRIER, CARRIER}).ok());  // loaded already
}

TEST(TransportLibraryTest, AnotherStampIsRefusedAndNamedBesideOurs) {
  const absl::Status refused = LoadTransports({OF_OLD});
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Says(refused), AllOf(HasSubstr(OF_OLD), HasSubstr("'penstock transport interface 0'"),
                                   HasSubstr(TransportStamp())));
}

TEST(TransportLibraryTest, OneWithoutATransportIsRefused) {
  const absl::Status refused = LoadTransports({OF_NONE});
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Says(refused), AllOf(HasSubstr(OF_NONE), HasSubstr("is not a transport library")));
}

TEST(TransportLibraryTest, AMissingOneIsNamed) {
  const absl::Status missing = LoadTransports({"/no/such/library.so"});
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Says(missing), HasSubstr("/no/such/library.so"));
  EXPECT_EQ(LoadTransports({__FILE__}).code(), absl::StatusCode::kNotFound);
}

TEST(TransportLibraryTest, ARegisteredNameIsRefused) {
  ASSERT_TRUE(LoadTransports({CARRIER}).ok());
  const std::filesystem::path copy = std::filesystem::path(testing::TempDir()) / "copy.so";
  std::filesystem::copy_file(CARRIER, copy, std::filesystem::copy_options::overwrite_existing);
  const absl::Status refused = LoadTransports({copy});
  std::filesystem::remove(copy);
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Says(refused), AllOf(HasSubstr("'carrier'"), HasSubstr(copy.string())));
}

}  // namespace
}  // namespace penstock::transfer
