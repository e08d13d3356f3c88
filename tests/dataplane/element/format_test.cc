// SPDX-License-Identifier: Apache-2.0
// Checks docs/element.md against the code.
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "dataplane/element/block.h"
#include "dataplane/element/frame.h"
#include "dataplane/memory/pool.h"

namespace penstock {
namespace {

Element ExampleElement() {
  const Spec spec = Spec::Dict({{"image", Dense(kUInt8, {2, 3})}, {"name", Bytes()}});
  const uint8_t pixels[] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {2, 3};
  const uint64_t offsets[] = {0, 5};
  const Tensor tensors[] = {Tensor(kUInt8, dims, pixels), Tensor(kString, {}, offsets, "a.png")};
  Element element = MakeElement(DefaultPool(), tensors, spec).value();
  element.set_identity({.job = JobId(7),
                        .iteration = IterationId(2),
                        .partition = PartitionId(3),
                        .placement = Placement(1),
                        .index = 17});
  return element;
}

// Returns the bytes of the lines "00000000: 50 53 … " of a page.
std::vector<std::byte> HexdumpOf(const std::string& path) {
  std::ifstream page(path);
  EXPECT_TRUE(page) << path;
  std::vector<std::byte> bytes;
  for (std::string line; std::getline(page, line);) {
    if (line.find_first_not_of("0123456789abcdef") != 8) continue;
    if (line.size() < 58 || line.substr(8, 2) != ": ") continue;
    std::istringstream hex(line.substr(10, 47));
    for (int byte; hex >> std::hex >> byte;) bytes.push_back(static_cast<std::byte>(byte));
  }
  return bytes;
}

TEST(Format, IsThatOfThePagesExample) {
  const std::vector<std::byte> expected = HexdumpOf(PENSTOCK_ELEMENT_PAGE);
  const Element element = ExampleElement();
  ASSERT_EQ(expected.size(), element.block().size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(element.block()[i], expected[i]) << "at " << i;
  }
}

TEST(Format, HasItsFieldsWhereThePageSays) {
  EXPECT_EQ(offsetof(HeadPrefix, flags), 6u);
  EXPECT_EQ(offsetof(HeadPrefix, body_bytes), 16u);
  EXPECT_EQ(offsetof(HeadPrefix, index), 48u);
  EXPECT_EQ(offsetof(HeadPrefix, partition), 64u);
  EXPECT_EQ(offsetof(HeadPrefix, consumer), 72u);
  EXPECT_EQ(offsetof(HeadPrefix, extension_bytes), 76u);
  EXPECT_EQ(offsetof(LeafEntry, shape_offset), 4u);
  EXPECT_EQ(offsetof(LeafEntry, data_bytes), 16u);
  EXPECT_EQ(offsetof(FramePrefix, block_count), 8u);
  EXPECT_EQ(offsetof(FramePrefix, frame_bytes), 16u);
}

}  // namespace
}  // namespace penstock
