// SPDX-License-Identifier: Apache-2.0
// A bench checks the elements that it reads. Here they are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "bench/limits/limits.h"
#include "bench/scratch.h"
#include "bench/workload.h"

namespace penstock::bench {
namespace {

Setup SetupOf(const Workload& workload) {
  return {.workload = std::string(workload.name()),
          .element_bytes = 4096,
          .window_s = 0.001,
          .source_bytes = 1 << 20};
}

// Returns element number `index` as the workload's dataset makes it.
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

TEST(InPlaceWorkload, KnowsItsElementsAfterEachLastNode) {
  bench::Setup setup = SetupOf(S1InPlace());
  setup.element_bytes = S1InPlace().sizes().front();
  for (const Shape& shape : S1InPlace().shapes()) {
    setup.last = shape.last;
    auto reader = S1InPlace().MakeReader(setup);
    Iterator it = *S1InPlace().MakeDataset(setup).MakeIterator();
    for (int64_t index = 0; index < 4; ++index) {
      Element element = **it.Next();
      element.set_identity({.partition = PartitionId(1), .index = index});
      const absl::StatusOr<int64_t> bytes = reader->Take(element);
      ASSERT_TRUE(bytes.ok()) << shape.last << bytes.status();
      EXPECT_EQ(*bytes, setup.element_bytes);
      element.set_identity({.partition = PartitionId(1), .index = index + 2});
      EXPECT_TRUE(absl::IsDataLoss(reader->Take(element).status())) << shape.last;
    }
  }
}

// Workloads whose workers read files. Each test writes them into a folder of its own.
class FileWorkload : public ::testing::TestWithParam<const Workload*> {
 protected:
  void SetUp() override {
    absl::StatusOr<Scratch> scratch = Scratch::Make();
    ASSERT_TRUE(scratch.ok()) << scratch.status();
    scratch_.emplace(*std::move(scratch));
    setup_ = SetupOf(*GetParam());
    setup_.element_bytes = GetParam()->sizes().front();
    setup_.scratch = scratch_->path();
    const absl::Status prepared = GetParam()->Prepare(setup_);
    ASSERT_TRUE(prepared.ok()) << prepared;
  }

  std::optional<Scratch> scratch_;
  bench::Setup setup_;
};

TEST_P(FileWorkload, TakesElementsThatAreDue) {
  auto reader = GetParam()->MakeReader(setup_);
  Iterator it = *GetParam()->MakeDataset(setup_).MakeIterator();
  for (int64_t index = 0; index < 3; ++index) {
    absl::StatusOr<std::optional<Element>> element = it.Next();
    ASSERT_TRUE(element.ok() && element->has_value()) << element.status();
    (*element)->set_identity({.partition = PartitionId(1), .index = index});
    const absl::StatusOr<int64_t> bytes = reader->Take(**element);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(*bytes, setup_.element_bytes);
  }
}

TEST_P(FileWorkload, RefusesAnElementThatComesTwice) {
  auto reader = GetParam()->MakeReader(setup_);
  Iterator it = *GetParam()->MakeDataset(setup_).MakeIterator();
  Element element = **it.Next();
  element.set_identity({.partition = PartitionId(1), .index = 0});
  ASSERT_TRUE(reader->Take(element).ok());
  EXPECT_TRUE(absl::IsDataLoss(reader->Take(element).status()));
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, FileWorkload,
    ::testing::Values(&I1(), &I1Shuffle(), &I2(), &V1(), &C1(), &L1Zero(), &R1()),
    [](const auto& info) {
      return absl::StrReplaceAll(std::string(info.param->name()), {{"-", "_"}});
    });

// Workloads that are compared with a hand-written loop, which makes the same elements.
class HandMade : public FileWorkload {};

TEST_P(HandMade, ItsLimitMakesElementsThatItsReaderWouldTake) {
  absl::StatusOr<std::unique_ptr<Side>> limit = GetParam()->MakeLimit(setup_);
  ASSERT_TRUE(limit.ok()) << limit.status();
  const absl::StatusOr<Done> done = (*limit)->Read(0.001);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_GT(done->elements, 0);
  EXPECT_EQ(done->bytes, done->elements * setup_.element_bytes);
}

TEST_P(HandMade, ItsLimitFailsOnADamagedFile) {
  for (const auto& entry : std::filesystem::directory_iterator(setup_.scratch)) {
    std::fstream file(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(entry.file_size() / 2));
    file << "damage";
  }
  absl::StatusOr<std::unique_ptr<Side>> limit = GetParam()->MakeLimit(setup_);
  ASSERT_TRUE(limit.ok()) << limit.status();
  absl::Status read;
  for (int i = 0; i < 1000 && read.ok(); ++i) read = (*limit)->Read(0.001).status();
  EXPECT_TRUE(absl::IsDataLoss(read)) << read;
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, HandMade, ::testing::Values(&V1(), &C1(), &L1Zero(), &R1()), [](const auto& info) {
      return absl::StrReplaceAll(std::string(info.param->name()), {{"-", "_"}});
    });

// Brings a hundred elements at once, however short the window.
class Instant final : public Side {
 public:
  std::string name() const override { return "instant"; }
  const Roles& roles() const override { return roles_; }
  absl::StatusOr<Done> Read(double seconds) override {
    return Done{.seconds = seconds, .elements = 100, .bytes = 800};
  }

 private:
  Roles roles_;
};

TEST(PacedLimit, IsNeverAheadOfTheTrainers) {
  const auto paced = MakePacedLimit(std::make_unique<Instant>(), 10'000);
  const Done done = *paced->Read(0.001);
  EXPECT_LE(done.elements, 10'000 * done.seconds);
  EXPECT_EQ(done.bytes, 8 * done.elements);
  EXPECT_EQ(paced->name(), "instant, paced");
}

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
  EXPECT_EQ(FindWorkload("t1-1").value()->max_outstanding_requests(), 1);
  const absl::Status missing = FindWorkload("T9").status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_TRUE(absl::StrContains(missing.message(), "T1, T1-0")) << missing;
}

}  // namespace
}  // namespace penstock::bench
