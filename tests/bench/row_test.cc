// SPDX-License-Identifier: Apache-2.0
#include "bench/row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "bench/record.h"
#include "bench/report.h"

namespace penstock::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Window MakeWindow(const std::string& role, int64_t elements, double cpu, double foreign = 0) {
  return {.done = {.seconds = 2,
                   .elements = static_cast<double>(elements),
                   .bytes = elements * 1'000'000},
          .cpu_seconds = {{role, cpu}},
          .resident_bytes = {{role, 5e6}},
          .foreign_cores = foreign};
}

Pair MakePair(int64_t ours, int64_t limit, double foreign = 0) {
  return {.side = MakeWindow("worker", ours, 1, foreign), .limit = MakeWindow("limit", limit, 2)};
}

Row MakeRow(std::vector<Pair> pairs) {
  return {.setup = {.workload = "T1", .protocol = "shm", .element_bytes = 1'000'000},
          .limit = "fill1",
          .pairs = std::move(pairs)};
}

std::vector<nlohmann::json> Lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    lines.push_back(nlohmann::json::parse(line.begin(), line.end()));
  }
  return lines;
}

TEST(Row, TheRatioIsTheMedianOfThePairsNotThatOfTheRates) {
  const Summary summary =
      Summarize(MakeRow({MakePair(900, 1000), MakePair(50, 100), MakePair(8000, 10000)}));
  EXPECT_DOUBLE_EQ(summary.ratio, 0.8);
  EXPECT_DOUBLE_EQ(summary.worst_ratio, 0.5);
  EXPECT_EQ(summary.clean, 3u);
}

TEST(Row, UtilizationIsTheShareOfTimeThatTrainersCompute) {
  Row row = MakeRow({MakePair(90, 100)});  // in 2 s
  EXPECT_LT(Summarize(row).utilization, 0);
  row.step_s = 0.01;
  EXPECT_DOUBLE_EQ(Summarize(row).utilization, 0.45);
  row.setup.consumers = 3;
  EXPECT_DOUBLE_EQ(Summarize(row).utilization, 0.15);
  EXPECT_DOUBLE_EQ(Lines(RecordsOf(row)).back()["utilization"], 0.15);
  row.cached = true;
  EXPECT_DOUBLE_EQ(Summarize(row).utilization, 0.45);
}

TEST(Row, PairsOfABusyMachineDoNotCount) {
  const Row row = MakeRow({MakePair(90, 100), MakePair(10, 100, /*foreign=*/0.5)});
  const Summary summary = Summarize(row);
  EXPECT_DOUBLE_EQ(summary.ratio, 0.9);
  EXPECT_DOUBLE_EQ(summary.worst_ratio, 0.9);
  EXPECT_EQ(summary.clean, 1u);
  EXPECT_EQ(summary.pairs, 2u);
  EXPECT_EQ(NoteOn(row), "");
}

TEST(Row, SaysWhenNoPairWasClean) {
  const Row row = MakeRow({MakePair(90, 100, 0.5), MakePair(10, 100, 0.7)});
  EXPECT_DOUBLE_EQ(Summarize(row).ratio, 0.5);
  EXPECT_THAT(NoteOn(row), HasSubstr("other processes used 0.6 cores"));
}

TEST(Row, ComparesByTheCpuOfTheWorkersWhereThatIsTheQuestion) {
  Row row = MakeRow({MakePair(100, 100)});
  row.pairs[0].side.cpu_seconds["consumer"] = 7;  // the trainer's CPU does not count
  row.basis = Basis::kElementsPerWorkerCpuSecond;
  EXPECT_DOUBLE_EQ(Summarize(row).ratio, 2);
}

TEST(Row, CopiedIsTheShareOfElementsThroughSharedMemory) {
  Row row = MakeRow({MakePair(10, 10), MakePair(10, 10), MakePair(10, 10)});
  EXPECT_LT(Summarize(row).copied, 0);  // nothing came through shared memory
  for (Pair& pair : row.pairs) pair.side.done.shared = 200;
  row.pairs[0].side.done.copied = 10;
  row.pairs[2].side.done.copied = 2;
  EXPECT_DOUBLE_EQ(Summarize(row).copied, 0.01);
  EXPECT_DOUBLE_EQ(Lines(RecordsOf(row))[0]["copied"].get<double>(), 0.05);
  EXPECT_DOUBLE_EQ(Lines(RecordsOf(row)).back()["copied"].get<double>(), 0.01);
}

TEST(Row, ShareIsThatOfTheFirstByThatOfTheLast) {
  Row row = MakeRow({MakePair(100, 100)});
  EXPECT_LT(Summarize(row).share, 0);
  row.pairs[0].side.done.shares = {30, 50, 20};
  EXPECT_DOUBLE_EQ(Summarize(row).share, 2.5);
}

TEST(Record, HasALineAWindowAndASummary) {
  const std::vector<nlohmann::json> lines =
      Lines(RecordsOf(MakeRow({MakePair(90, 100), MakePair(80, 100)})));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1].at("run"), 1);
  EXPECT_DOUBLE_EQ(lines[0].at("gb_per_s").get<double>(), 0.045);
  EXPECT_DOUBLE_EQ(lines[0].at("limit_gb_per_s").get<double>(), 0.05);
  EXPECT_FALSE(lines[0].contains("summary"));
  EXPECT_EQ(lines[2].at("summary"), true);
  EXPECT_EQ(lines[2].at("pairs"), 2);
  EXPECT_DOUBLE_EQ(lines[2].at("ratio").get<double>(), 0.85);
}

TEST(Record, NamesTheLanesOfUcx) {
  Row row = MakeRow({MakePair(90, 100)});
  EXPECT_FALSE(Lines(RecordsOf(row))[0].contains("lanes"));
  row.lanes = {"rc_mlx5/mlx5_0:1"};
  for (const nlohmann::json& line : Lines(RecordsOf(row))) {
    EXPECT_EQ(line.at("lanes"), nlohmann::json({"rc_mlx5/mlx5_0:1"}));
  }
}

TEST(Record, ASkippedRowHasAReasonAndNoFigures) {
  Row row = MakeRow({});
  row.status = absl::FailedPreconditionError("no RDMA device \xff here");
  const std::vector<nlohmann::json> lines = Lines(RecordsOf(row));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].at("ratio").is_null());
  EXPECT_THAT(lines[0].at("note").get<std::string>(), HasSubstr("no RDMA device"));
}

TEST(Report, LeavesOutColumnsThatNoRowFills) {
  const Report report = ReportOn({MakeRow({MakePair(90, 100)})});
  EXPECT_THAT(report.head, Not(::testing::Contains("max/min share")));
  ASSERT_EQ(report.lines.size(), 1u);
  EXPECT_EQ(report.lines[0].size(), report.head.size());
  EXPECT_THAT(report.lines[0], ::testing::Contains("0.900"));
}

TEST(Report, SizesReadAsPeopleSayThem) {
  EXPECT_EQ(SizeText(65536), "64 KiB");
  EXPECT_EQ(SizeText(3 << 20), "3 MiB");
  EXPECT_EQ(SizeText(9633792), "9,633,792 B");
  EXPECT_EQ(SizeText(8), "8 B");
}

}  // namespace
}  // namespace penstock::bench
