// SPDX-License-Identifier: Apache-2.0
#include "penstock/element.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataplane/element/block.h"
#include "dataplane/memory/pool.h"
#include "tests/dataplane/element/sample.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Element Make(std::vector<Tensor> tensors, const Spec& spec) {
  return MakeElement(DefaultPool(), tensors, spec).value();
}

TEST(Element, OfNothingIsFalse) {
  const Element element;
  EXPECT_FALSE(element);
  EXPECT_EQ(element.size(), 0u);
  EXPECT_TRUE(element.block().empty());
  EXPECT_EQ(element.ToString(), "no element");
}

TEST(Element, OfNoTensorsIsOne) {
  const Element element = Make({}, Spec());
  EXPECT_TRUE(element);
  EXPECT_EQ(element.size(), 0u);
  EXPECT_EQ(element.ToString(), "()");
  EXPECT_TRUE(CheckBlock(element.block(), Spec()).ok());
}

TEST(Element, GivesItsTensorsByKeyAndByNumber) {
  const Element element = SampleElement();
  EXPECT_EQ(element["scalar"].scalar<int64_t>(), 42);
  EXPECT_THAT(element["dense"].dims(), ElementsAre(2, 3));
  EXPECT_EQ(element.tensor(2).string(), "bytes");
  EXPECT_FALSE(element["absent"].present());
  EXPECT_EQ(element["empty"].element_count(), 0);
  EXPECT_THAT(element["ragged"].row_splits(1), ElementsAre(0, 1, 1, 3));
  EXPECT_THAT(element["sparse"].indices(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(element["sparse"].dense_shape(), ElementsAre(3, 4));
}

TEST(Element, NamesItsKeysWhenOneIsMissing) {
  const Spec spec = Spec::Dict({{"a", Scalar(kInt8)}, {"n", Spec::Tuple({Scalar(kInt8)})}});
  const int8_t value = 1;
  const Element element = Make({Tensor(kInt8, {}, &value), Tensor(kInt8, {}, &value)}, spec);
  EXPECT_EQ(element.Find("b").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(element.Find("b").status().message()), HasSubstr("'a', 'n'"));
  EXPECT_EQ(element.Find("n").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(element.Find("a")->scalar<int8_t>(), 1);
}

TEST(ElementDeathTest, AbortsOnAKeyThatIsNotThere) {
  const Element element = SampleElement();
  EXPECT_DEATH(element["none"], "no member 'none'");
}

TEST(Element, CarriesItsIdentity) {
  Element element = SampleElement();
  EXPECT_EQ(element.identity(), (Identity{.round = -1, .consumer = -1}));
  const Identity identity = {.job = JobId(~uint64_t{0}),
                             .iteration = IterationId(2),
                             .partition = PartitionId(0xffffffff),
                             .placement = Placement(4),
                             .index = int64_t{1} << 40,
                             .round = 6,
                             .consumer = 7};
  element.set_identity(identity);
  EXPECT_EQ(element.identity(), identity);
  EXPECT_TRUE(CheckBlock(element.block(), SampleSpec()).ok());
}

TEST(Element, IsSharedWhileTwoHandlesReadIt) {
  Element first = SampleElement();
  EXPECT_FALSE(first.IsShared());
  {
    const Element second = first.Share();
    EXPECT_TRUE(first.IsShared());
    EXPECT_EQ(second.block().data(), first.block().data());
  }
  EXPECT_FALSE(first.IsShared());
}

TEST(Element, ThatWasMovedFromIsFalse) {
  Element first = SampleElement();
  Element second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT: what it is, is the point
  first = std::move(second);
  EXPECT_FALSE(second);  // NOLINT
  EXPECT_TRUE(first);
  EXPECT_EQ(first.spec(), SampleSpec());
}

TEST(Element, IsWrittenInPlace) {
  Element element = SampleElement();
  element.mutable_data<float>(3)[0] = 9;
  EXPECT_EQ(element["dense"].data<float>()[0], 9);
}

TEST(Element, CopiesIntoABlockOfItsOwn) {
  Element element = SampleElement();
  const Element copy = element.Copy().value();
  EXPECT_NE(copy.block().data(), element.block().data());
  element.mutable_data<float>(3)[0] = 9;
  EXPECT_EQ(copy["dense"].data<float>()[0], 1);
  EXPECT_EQ(copy.spec(), element.spec());
  EXPECT_FALSE(Element().Copy().value());
}

}  // namespace
}  // namespace penstock
