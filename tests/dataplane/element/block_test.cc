// SPDX-License-Identifier: Apache-2.0
#include "dataplane/element/block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "dataplane/element/extension.h"
#include "dataplane/memory/pool.h"
#include "tests/dataplane/element/sample.h"

namespace penstock {
namespace {

using testing::ElementsAre;

// A slot full of the bytes of an earlier element.
Loan DirtySlot(Pool& pool, size_t bytes) {
  Loan loan = pool.Lend(bytes).value();
  std::memset(loan.bytes().data(), 0xee, loan.bytes().size());
  return loan;
}

TEST(BlockLayout, OfNoLeavesIsAHeadAlone) {
  const absl::StatusOr<BlockLayout> layout = BlockLayout::Of({});
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->head_bytes(), 128u);
  EXPECT_EQ(layout->body_bytes(), 0u);
}

TEST(BlockLayout, OfAScalarTakesThreeCacheLines) {
  const BlockLayout layout = BlockLayout::OfStatic(Scalar(kInt64));
  EXPECT_EQ(layout.head_bytes(), 128u);
  EXPECT_EQ(layout.body_bytes(), 64u);
}

TEST(BlockLayout, OfStaticSpecsIsThatOfTheirElements) {
  const Spec spec = Spec::Tuple({Dense(kFloat32, {2, 3}), Dense(kUInt8, {0})});
  const LeafLayout leaves[] = {{.dtype = kFloat32, .dims = {2, 3}}, {.dtype = kUInt8, .dims = {0}}};
  const absl::StatusOr<BlockLayout> layout = BlockLayout::Of(leaves);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->bytes(), BlockLayout::OfStatic(spec).bytes());
}

TEST(BlockLayout, RefusesSizesBeyondAnyMemory) {
  const auto status_of = [](LeafLayout leaf) {
    return BlockLayout::Of({std::move(leaf)}).status();
  };
  const int64_t huge = int64_t{1} << 40;
  for (const absl::Status& status :
       {status_of({.dtype = kInt8, .dims = {3, -1}}),
        status_of({.dtype = kInt64, .dims = {huge, huge}}),
        status_of({.dtype = kString, .string_bytes = size_t{4} << 30}),
        status_of({.dtype = kString, .dims = {huge, huge}}),
        status_of({.dtype = kInt8, .dims = {0, huge, huge}}),
        status_of({.dtype = kInt8,
        .kind = TensorSpec::Kind::kRagged,
        .dims = {1},
        .part_counts = {2, 2, 2, 2, 2}}),
        status_of({.dtype = kInt8, .dims = absl::InlinedVector<int64_t, 6>(256, 1)}),
        status_of({.dtype = kInt8,
        .kind = TensorSpec::Kind::kRagged,
        .dims = {1},
        .part_counts = {huge}})}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_NE(status.message().find("leaf 0"), absl::string_view::npos) << status;
  }
}

TEST(BlockLayout, OfAnEmptyTensorWithAHugeDimensionIsSmall) {
  const LeafLayout leaf = {.dtype = kInt64, .dims = {0, int64_t{1} << 40}};
  const absl::StatusOr<BlockLayout> layout = BlockLayout::Of({leaf});
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->body_bytes(), 0u);
}

TEST(BlockLayout, MadeByDefaultIsThatOfNoLeaves) {
  const Element element = std::move(*NewBlock(DefaultPool(), BlockLayout(), Spec())).Seal(Spec());
  EXPECT_EQ(CheckBlock(element.block(), Spec()).value(), BlockLayout::Of({})->bytes());
}

TEST(BlockWriter, WritesBlocksThatAnElementReads) {
  const Spec spec = Spec::Tuple({Dense(kInt32, {2, 2}), Dense(kString, {2})});
  const LeafLayout leaves[] = {{.dtype = kInt32, .dims = {2, 2}},
                               {.dtype = kString, .dims = {2}, .string_bytes = 5}};
  OpenBlock block = NewBlock(DefaultPool(), BlockLayout::Of(leaves).value(), spec).value();
  for (int i = 0; i < 4; ++i) block.writer.data_as<int32_t>(0)[i] = 10 * i;
  block.writer.SetString(1, 0, "ab");
  const absl::Span<char> in_place = block.writer.OpenString(1, 1, 3);
  std::memcpy(in_place.data(), "xyz", 3);
  const Element element = std::move(block).Seal(spec);
  EXPECT_THAT(element.tensor(0).data<int32_t>(), ElementsAre(0, 10, 20, 30));
  EXPECT_THAT(element.tensor(0).dims(), ElementsAre(2, 2));
  EXPECT_EQ(element.tensor(1).string(0), "ab");
  EXPECT_EQ(element.tensor(1).string(1), "xyz");
}

TEST(BlockWriter, PutsEveryTensorAtAMultipleOf64) {
  std::vector<LeafLayout> leaves;
  std::vector<Spec> members;
  for (int64_t size = 0; size < 70; ++size) {
    leaves.push_back({.dtype = kUInt8, .dims = {size}});
    members.push_back(Dense(kUInt8, {size}));
  }
  const Spec spec = Spec::Tuple(members);
  OpenBlock block = NewBlock(DefaultPool(), BlockLayout::Of(leaves).value(), spec).value();
  for (size_t i = 0; i < leaves.size(); ++i) {
    ASSERT_EQ(reinterpret_cast<uintptr_t>(block.writer.data(i).data()) % 64, 0u) << i;
    ASSERT_EQ(block.writer.data(i).size(), i);
  }
}

TEST(BlockWriter, LeavesNothingOfAnEarlierElementInThePadding) {
  const Spec spec = Spec::Tuple({Dense(kUInt8, {3}), Bytes(), Dense(kUInt8, {65})});
  const LeafLayout leaves[] = {{.dtype = kUInt8, .dims = {3}},
                               {.dtype = kString, .string_bytes = 1},
                               {.dtype = kUInt8, .dims = {65}}};
  const BlockLayout layout = BlockLayout::Of(leaves, 16).value();
  const Loan loan = DirtySlot(DefaultPool(), layout.bytes());
  BlockWriter writer(layout, loan.bytes(), spec);
  std::fill_n(writer.data(0).data(), 3, std::byte{1});
  writer.SetString(1, 0, "s");
  std::fill_n(writer.data(2).data(), 65, std::byte{1});
  const auto bytes = loan.bytes().subspan(0, layout.bytes());
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{0xee}), 0);
}

TEST(BlockWriter, CopiesLeavesOfEveryKind) {
  const Element sample = SampleElement();
  EXPECT_EQ(sample.ToString(),
            "{absent: absent, bools: [true false true] bool [3], bytes: \"bytes\" string, "
            "dense: [1 2 3 4 5 6] float32 [2,3], empty: [] int16 [0,5], "
            "ragged: [1 2 3 4 5 6] int32 [3,2] rows [0 2 3] rows [0 1 1 3], "
            "scalar: 42 int64, sparse: [7 9] uint8 [2] of [3,4], "
            "words: [\"hi\" \"\" \"you\"] string [3] rows [0 1 3]}");
}

TEST(BlockWriterDeathTest, AbortsOnMoreStringsThanLaidOut) {
  const LeafLayout leaf = {.dtype = kString, .string_bytes = 2};
  OpenBlock block = NewBlock(DefaultPool(), BlockLayout::Of({leaf}).value(), Bytes()).value();
  EXPECT_DEATH(block.writer.SetString(0, 0, "abc"), "check failed");
  EXPECT_DEATH(block.writer.SetString(0, 1, ""), "check failed");
}

TEST(BlockWriterDeathTest, AbortsWhenAStringIsMissing) {
  const LeafLayout leaf = {.dtype = kString, .dims = {2}, .string_bytes = 2};
  OpenBlock block =
      NewBlock(DefaultPool(), BlockLayout::Of({leaf}).value(), Dense(kString, {2})).value();
  block.writer.SetString(0, 0, "ab");
  EXPECT_DEATH(std::move(block).Seal(Dense(kString, {2})), "StringsComplete");
}

TEST(Extension, IsFoundByItsTypeAfterUnknownOnes) {
  const BlockLayout layout = BlockLayout::Of({}, ExtensionBytes(3) + ExtensionBytes(1) + 8).value();
  const Loan loan = DirtySlot(DefaultPool(), layout.bytes());
  BlockWriter writer(layout, loan.bytes(), Spec());
  ExtensionWriter extensions(writer.extensions());
  std::memcpy(extensions.Add(static_cast<ExtensionType>(999), 3).data(), "new", 3);
  std::memcpy(extensions.Add(ExtensionType::kBookmark, 1).data(), "b", 1);
  ASSERT_TRUE(CheckBlock(loan.bytes(), Spec()).ok());
  const auto found = FindExtension(loan.bytes().data(), ExtensionType::kBookmark);
  ASSERT_TRUE(found);
  EXPECT_THAT(*found, ElementsAre(std::byte{'b'}));
  EXPECT_FALSE(FindExtension(loan.bytes().data(), ExtensionType::kStatus));
}

}  // namespace
}  // namespace penstock
