// SPDX-License-Identifier: Apache-2.0
#include "dataplane/element/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace penstock {
namespace {

TEST(Crc32c, GivesThePublishedValues) {  // RFC 3720, B.4
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending.push_back(static_cast<char>(i));
  for (auto crc : {Crc32c, Crc32cPortable}) {
    EXPECT_EQ(crc("", 0), 0u);
    EXPECT_EQ(crc("123456789", 0), 0xe3069283u);
    EXPECT_EQ(crc(std::string(32, '\0'), 0), 0x8a9136aau);
    EXPECT_EQ(crc(std::string(32, '\xff'), 0), 0x62a8ab43u);
    EXPECT_EQ(crc(ascending, 0), 0x46dd794eu);
    EXPECT_EQ(crc("456789", crc("123", 0)), 0xe3069283u);
  }
}

TEST(Crc32c, InstructionAndTablesAgree) {
  std::mt19937 random(5);
  for (size_t size = 0; size < 300; ++size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const std::string_view unaligned = std::string_view(bytes).substr(size % 8 % (size + 1));
    EXPECT_EQ(Crc32c(unaligned), Crc32cPortable(unaligned)) << size;
  }
}

}  // namespace
}  // namespace penstock
