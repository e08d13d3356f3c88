// SPDX-License-Identifier: Apache-2.0
// What a bench reads is checked; here elements that are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "bench/workload.h"

namespace penstock::bench {
namespace {

Setup SetupOf(const Workload& workload) {
  return {.workload = std::string(workload.name()),
          .element_bytes = 4096,
          .window_s = 0.001,
          .source_bytes = 1 << 20};
}

// Element number `index` as the workload's dataset makes it.
Element Make(const Workload& workload, int64_t index) {
  Iterator it = *workload.MakeDataset(SetupOf(workload)).Skip(index).MakeIterator();
  Element element = **it.Next();
  element.set_identity({.partition = PartitionId(1), .index = index});
  return element;
}

class BufferWorkload : public ::testing::TestWithParam<const Workload*> {};

TEST_P(BufferWorkload, TakesElementsThatAreDue) {
  auto reader = GetParam()->MakeReader(SetupOf(*GetParam()));
  for (int64_t index = 0; index < 3; ++index) {
    const absl::StatusOr<int64_t> bytes = reader->Take(Make(*GetParam(), index));
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(*bytes, GetParam()->sized() ? 4096 : GetParam()->sizes().front());
  }
}

TEST_P(BufferWorkload, RefusesAnElementOutOfOrder) {
  auto reader = GetParam()->MakeReader(SetupOf(*GetParam()));
  EXPECT_TRUE(absl::IsDataLoss(reader->Take(Make(*GetParam(), 1)).status()));
}

TEST_P(BufferWorkload, RefusesTheContentsOfAnother) {
  auto reader = GetParam()->MakeReader(SetupOf(*GetParam()));
  Element element = Make(*GetParam(), 1);
  element.set_identity({.partition = PartitionId(1), .index = 0});
  EXPECT_TRUE(absl::IsDataLoss(reader->Take(element).status()));
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, BufferWorkload, ::testing::Values(&T1(), &T1Zero(), &T2()), [](const auto& info) {
      return absl::StrReplaceAll(std::string(info.param->name()), {{"-", "_"}});
    });

TEST(RangeWorkload, RefusesANumberThatComesAgain) {
  auto reader = Range().MakeReader(SetupOf(Range()));
  ASSERT_TRUE(reader->Take(Make(Range(), 5)).ok());
  EXPECT_TRUE(absl::IsDataLoss(reader->Take(Make(Range(), 5)).status()));
}

TEST(RangeWorkload, MissesNumbersAtTheEnd) {
  auto reader = Range().MakeReader(SetupOf(Range()));
  ASSERT_TRUE(reader->Take(Make(Range(), 5)).ok());
  const absl::Status end = reader->EndOfPass();
  EXPECT_TRUE(absl::IsDataLoss(end));
  EXPECT_TRUE(absl::StrContains(end.message(), "9999 of 10000 numbers are missing")) << end;
}

TEST(Workloads, AreFoundInAnyCaseAndListedWhereNot) {
  EXPECT_EQ(*FindWorkload("t1-0"), &T1Zero());
  const absl::Status missing = FindWorkload("T9").status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_TRUE(absl::StrContains(missing.message(), "T1, T1-0")) << missing;
}

}  // namespace
}  // namespace penstock::bench
