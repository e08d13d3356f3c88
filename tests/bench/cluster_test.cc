// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "bench/cluster/level.h"
#include "bench/cluster/pairs.h"
#include "bench/cluster/perftest.h"
#include "bench/cluster/run_levels.h"
#include "bench/cluster/survey.h"
#include "bench/report.h"
#include "bench/scratch.h"

namespace penstock::bench {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
namespace verbs = transfer::verbs;

TEST(Survey, GoesFromHostToHostWhole) {
  Survey survey = SurveyHere("127.0.0.1", "");
  EXPECT_EQ(survey.interface, "lo");
  survey.rdma = RdmaPort{.device = "mlx5_0",
                         .number = 1,
                         .ethernet = true,
                         .gigabits_per_s = 200,
                         .gids = {{"RoCE v2 IPv4", 3}}};
  survey.gpus = 2;
  survey.gpu_options = {kUseCuda};
  survey.machine.numa_nodes = 2;
  survey.machine.adapters = {{.name = "eth0"},
                             {.name = "mlx5_0:1",
                              .gigabits_per_s = 200,
                              .numa_node = 1,
                              .pcie_gt_per_s = 16,
                              .pcie_width = 16}};
  const absl::StatusOr<Survey> other = SurveyOf(ToJson(survey));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(ToJson(*other), ToJson(survey));
}

TEST(Survey, SaysWhichMemoryOfGpusToolsKnow) {
  const auto options_of = [](const std::string& perftest, const std::string& ucx_perftest) {
    const absl::StatusOr<Scratch> folder = Scratch::Make();
    for (const auto& [name, help] :
         {std::pair("ib_read_bw", perftest), {"ucx_perftest", ucx_perftest}}) {
      const std::string path = absl::StrCat(folder->path(), "/", name);
      std::ofstream(path) << "#!/bin/sh\necho '" << help << "'\n";
      ::chmod(path.c_str(), 0700);
    }
    const std::string before = std::getenv("PATH");
    ::setenv("PATH", absl::StrCat(folder->path(), ":", before).c_str(), 1);
    const Survey survey = SurveyHere("", "");
    ::setenv("PATH", before.c_str(), 1);
    return survey.gpu_options;
  };
  EXPECT_THAT(options_of("--use_cuda=<cuda device id>", "host - System memory"),
              ElementsAre(kUseCuda));
  EXPECT_THAT(options_of("--use_cuda=<cuda device id>\n--use_cuda_dmabuf",
                         "host - System memory\n    cuda - NVIDIA GPU memory"),
              ElementsAre(kUseCuda, kUseDmabuf, kCudaMemory));
  EXPECT_THAT(options_of("--report_gbits", "-m"), ElementsAre());
}

TEST(Survey, AnotherVersionOrOtherWordsAreNoSurvey) {
  nlohmann::json json = ToJson(SurveyHere("", ""));
  json["version"] = "0.0";
  EXPECT_THAT(SurveyOf(json).status().message(), HasSubstr("another version"));
  json = ToJson(SurveyHere("", ""));
  json["tools"] = 7;
  EXPECT_EQ(SurveyOf(json).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(SurveyOf(nullptr).ok());
}

TEST(Survey, TakesTheFirstActivePort) {
  const verbs::Gid gid{.index = 3, .address = "::ffff:10.0.0.1", .type = verbs::GidType::kRoceV2};
  const std::vector<verbs::Device> devices = {
      {.name = "a", .ports = {{.number = 1, .state = verbs::PortState::kDown}}},
      {.name = "b",
       .ports = {{.number = 2,
                  .state = verbs::PortState::kActive,
                  .link_layer = verbs::LinkLayer::kEthernet,
                  .gids = {gid}}}}};
  const absl::StatusOr<RdmaPort> port = ChoosePort(devices, "");
  ASSERT_TRUE(port.ok()) << port.status();
  EXPECT_EQ(port->device, "b");
  EXPECT_EQ(port->number, 2);
  EXPECT_EQ(port->gids.at("RoCE v2 IPv4"), 3);
  EXPECT_THAT(ChoosePort(devices, "a").status().message(),
              HasSubstr("no active RDMA device a; port 1 of a is not active"));
  EXPECT_THAT(ChoosePort({}, "").status().message(), HasSubstr("no RDMA device"));
}

Survey WithPort(bool ethernet, std::map<std::string, int> gids) {
  Survey survey;
  survey.rdma = RdmaPort{.device = "d", .number = 1, .ethernet = ethernet, .gids = gids};
  return survey;
}

TEST(Path, NeedsAPortAtBothEndsAndOneKindOfGid) {
  const Survey four_and_six = WithPort(true, {{"RoCE v2 IPv4", 3}, {"RoCE v2 IPv6", 1}});
  const Survey six = WithPort(true, {{"RoCE v2 IPv6", 5}});
  const absl::StatusOr<RdmaPath> path = FindPath("a", four_and_six, "b", six);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(path->gid_kind, "RoCE v2 IPv6");
  Survey none;
  none.no_rdma = "no RDMA device";
  EXPECT_EQ(FindPath("a", six, "b", none).status().message(), "on b: no RDMA device");
  EXPECT_THAT(FindPath("a", six, "b", WithPort(false, {})).status().message(),
              HasSubstr("on Ethernet and the other's on InfiniBand"));
  EXPECT_THAT(FindPath("a", six, "b", WithPort(true, {{"RoCE v1", 0}})).status().message(),
              HasSubstr("no GID of the same kind"));
}

TEST(Perftest, TheReaderOrWriterIsTheClient) {
  const absl::StatusOr<RdmaPath> path = FindPath("a", WithPort(true, {{"RoCE v2 IPv4", 3}}), "b",
                                                 WithPort(true, {{"RoCE v2 IPv4", 7}}));
  ASSERT_TRUE(path.ok());
  const Tool read = Perftest({.element_bytes = 4096}, "ib_read_bw", *path);
  EXPECT_FALSE(read.client_there);
  const ToolRun run = read.run("10.0.0.2", 20'000, 2, 0);
  EXPECT_EQ(run.client.back(), "10.0.0.2");
  EXPECT_EQ(run.client[run.client.size() - 2], "3");
  EXPECT_EQ(run.server.back(), "7");
  EXPECT_TRUE(Perftest({}, "ib_write_bw", *path).client_there);
  EXPECT_THAT(run.client, Contains("-q"));
  // ib_read_lat has no options for queue pairs or rates.
  const ToolRun one = Perftest({.element_bytes = 4096}, "ib_read_lat", *path).run("b", 1, 2, 0);
  EXPECT_THAT(one.client, Not(Contains(AnyOf("-q", "--report_gbits"))));
}

TEST(Perftest, OnlyTheReaderHasAGpu) {
  const Tool read = Perftest({.element_bytes = 4096}, "ib_read_bw", RdmaPath(), {"--use_cuda=0"});
  const ToolRun run = read.run("10.0.0.2", 20'000, 2, 0);
  EXPECT_THAT(run.client, Contains("--use_cuda=0"));
  EXPECT_EQ(run.client.back(), "10.0.0.2");
  EXPECT_THAT(run.server, Not(Contains("--use_cuda=0")));
}

TEST(Perftest, UcxIsToldTheMemoryAtBothEnds) {
  const auto run_of = [](bool to_gpu) {
    return UcxPerftest({.element_bytes = 4096}, "ucp_am_bw", {.to_gpu = to_gpu}).run("b", 1, 2, 0);
  };
  const ToolRun run = run_of(true);
  EXPECT_THAT(run.client, IsSupersetOf({"-m", "host,cuda"}));
  EXPECT_THAT(run.server, IsSupersetOf({"-m", "host,cuda"}));
  EXPECT_THAT(run_of(false).client, Not(Contains("-m")));
}

TEST(Perftest, ToolsAreToldOfAHostThatHasIpv6Alone) {
  const absl::StatusOr<RdmaPath> path =
      FindPath("a", WithPort(false, {}), "b", WithPort(false, {}));
  ASSERT_TRUE(path.ok());
  const ToolRun read = Perftest({}, "ib_read_bw", *path).run("fd00::2", 1, 2, 0);
  EXPECT_THAT(read.server, Contains("--ipv6-addr"));
  EXPECT_THAT(read.client, Contains("--ipv6-addr"));
  const Tool ucx = UcxPerftest({.element_bytes = 4096}, "ucp_get", {});
  EXPECT_THAT(ucx.run("fd00::2", 1, 2, 0).server, Contains("-6"));
  EXPECT_THAT(ucx.run("10.0.0.2", 1, 2, 0).server, Not(Contains("-6")));
}

TEST(Perftest, RatesAreParsedFromTheToolsOutput) {
  constexpr char kPerftest[] =
      " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
      " 65536      1000             0.00               96.52              0.184100\n";
  EXPECT_DOUBLE_EQ(ParsePerftest(kPerftest, 65'536)->bytes_per_s, 96.52e9 / 8);
  EXPECT_FALSE(ParsePerftest(kPerftest, 4096).ok());
  constexpr char kUcx[] =
      "|     Test     | # iterations | 50.0%ile | average | overall |\n"
      "Final:       500      4.830   929.938   929.938     1075.34    1000.50     1075        "
      "1075\n";
  EXPECT_DOUBLE_EQ(ParseUcxPerftest(kUcx, false)->bytes_per_s, 1000.5 * (1 << 20));
  constexpr char kShort[] = "  100  0.872 10555.689 10555.689  94.74  94.50  95  95\n";
  EXPECT_DOUBLE_EQ(ParseUcxPerftest(kShort, false)->bytes_per_s, 94.5 * (1 << 20));
  EXPECT_FALSE(ParseUcxPerftest("UCX  ERROR", false).ok());
  EXPECT_DOUBLE_EQ(
      ParseIperf(R"({"end": {"sum_received": {"bits_per_second": 8e9}}})")->bytes_per_s, 1e9);
  EXPECT_EQ(ParseIperf(R"({"error": "refused"})").status().message(), "iperf3: refused");
}

TEST(Perftest, SoAreTimesOfOneMessage) {
  constexpr char kPerftest[] =
      " #bytes        #iterations       t_avg[usec]    tps average\n"
      " 4096          500000              2.05           487500.00\n";
  const absl::StatusOr<ToolResult> read = ParsePerftestLatency(kPerftest, 4096);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_DOUBLE_EQ(read->p50_us, 2.05);
  EXPECT_DOUBLE_EQ(read->bytes_per_s, 487'500.0 * 4096);
  constexpr char kUcx[] = "Final:  20000  5.868  23.123  23.123  168.94  168.94  43248  43248\n";
  EXPECT_DOUBLE_EQ(ParseUcxPerftest(kUcx, true)->p50_us, 5.868);
  EXPECT_DOUBLE_EQ(ParseUcxPerftest(kUcx, false)->p50_us, 0);
}

const Level* Find(const std::vector<Level>& levels, const std::string& name) {
  for (const Level& level : levels) {
    if (level.name() == name) return &level;
  }
  return nullptr;
}

TEST(Levels, OmittedOnesNameTheReason) {
  Survey here, there;
  here.name = "a";
  there.name = "b";
  here.tools = {"iperf3", "ib_read_bw", "ucx_perftest"};
  there.tools = {"ib_read_bw", "ucx_perftest"};
  here.machine.congestion_control = there.machine.congestion_control = "bbr";
  here.no_rdma = there.no_rdma = "no RDMA device";
  const std::vector<Level> levels =
      LinkLevels({.here = "10.0.0.1", .there = "10.0.0.2"}, here, there, {"tcp", "ucx", "shm"});
  EXPECT_EQ(Find(levels, "iperf3 cubic x1")->left_out.message(),
            "iperf3 is not installed on b (10.0.0.2)");
  EXPECT_EQ(Find(levels, "ib_read_bw")->left_out.message(), "on a (10.0.0.1): no RDMA device");
  EXPECT_TRUE(Find(levels, "ucx_perftest ucp_am_bw tcp")->left_out.ok());
  EXPECT_THAT(Find(levels, "tcp")->beside, ElementsAre("socket bbr x1"));
  EXPECT_THAT(Find(levels, "ucx")->beside,
              ElementsAre("socket bbr x1", "ucx_perftest ucp_am_bw tcp"));
  EXPECT_EQ(Find(levels, "shm"), nullptr);  // does not leave a host
}

// A ratio must compare the same ports.
TEST(Levels, OverRdmaOursGoesOverThePortThatTheToolsGoOver) {
  Survey here = WithPort(false, {}), there = WithPort(false, {});
  here.rdma->device = "mlx5_0";
  there.rdma->device = "mlx5_3";
  here.rdma->gigabits_per_s = 400;
  there.rdma->gigabits_per_s = 200;
  here.tools = there.tools = {"ib_read_bw", "ucx_perftest"};
  const std::vector<Level> levels =
      LinkLevels({.here = "10.0.0.1", .there = "10.0.0.2"}, here, there, {"ucx"});
  const Level* const one_port = Find(levels, "ucx mlx5_0:1 from mlx5_3:1");
  ASSERT_NE(one_port, nullptr);
  EXPECT_THAT(one_port->beside, ElementsAre("ib_read_bw", "ucx_perftest ucp_am_bw rdma"));
  EXPECT_THAT(Find(levels, "ucx one at a time")->beside,
              ElementsAre("ib_read_lat", "ucx_perftest ucp_am_lat rdma"));
  EXPECT_EQ(one_port->line_gb_per_s, 25);
  EXPECT_EQ(Find(levels, "ib_read_bw")->line_gb_per_s, 25);
  EXPECT_TRUE(Find(levels, "ucx")->beside.empty());  // it uses as many ports as it needs
}

TEST(Levels, IntoAGpuOmittedOnesNameTheReason) {
  Survey here = WithPort(false, {}), there = WithPort(false, {});
  here.name = "a";
  there.name = "b";
  here.tools = there.tools = {"ib_read_bw", "ucx_perftest"};
  here.no_gpu = there.no_gpu = "no GPU: no driver";
  const auto why = [&](const std::string& name) {
    const std::vector<Level> levels =
        LinkLevels({.here = "a", .there = "b"}, here, there, {"ucx", "tcp"});
    const Level* const level = Find(levels, name);
    return level == nullptr ? "no such level" : std::string(level->left_out.message());
  };
  const std::string read = "ib_read_bw to GPU 0", dmabuf = "ib_read_bw to GPU 0 by dma-buf",
                    ucx = "ucx_perftest ucp_am_bw rdma to GPU 0", ours = "ucx to GPU 0",
                    ours_staged = "tcp to GPU 0";
  for (const std::string& name : {read, dmabuf, ucx, ours, ours_staged}) {
    EXPECT_EQ(why(name), "on a: no GPU: no driver") << name;
  }
  here.gpus = 1;
  EXPECT_EQ(why(read), "ib_read_bw on a was built without CUDA: it has no --use_cuda");
  EXPECT_EQ(why(dmabuf), "ib_read_bw on a was built without CUDA: it has no --use_cuda_dmabuf");
  EXPECT_EQ(why(ucx), "on b: no GPU: no driver");  // ucx_perftest allocates at both ends
  EXPECT_EQ(why(ours), "");                        // the sender's memory is a worker's
  there.gpus = 1;
  here.gpu_options = {kUseCuda, kUseDmabuf, kCudaMemory};
  EXPECT_EQ(why(ucx), "ucx_perftest on b was built without CUDA: it has no -m cuda");
  there.gpu_options = {kCudaMemory};
  for (const std::string& name : {read, dmabuf, ucx}) EXPECT_EQ(why(name), "") << name;
  here.tools = {};
  EXPECT_EQ(why(read), "ib_read_bw is not installed on a");
  here.rdma.reset();
  here.no_rdma = "no RDMA device";
  EXPECT_EQ(why(read), "on a: no RDMA device");
}

TEST(Levels, IntoAGpuStandBesideTheSameIntoHostMemory) {
  Survey survey = WithPort(false, {});
  survey.rdma->gigabits_per_s = 200;
  survey.tools = {"ib_read_bw", "ucx_perftest"};
  survey.gpus = 1;
  survey.gpu_options = {kUseCuda, kUseDmabuf, kCudaMemory};
  const std::vector<Level> levels =
      LinkLevels({.here = "a", .there = "b"}, survey, survey, {"ucx"});
  const Level* const read = Find(levels, "ib_read_bw to GPU 0");
  ASSERT_NE(read, nullptr);
  EXPECT_THAT(read->beside, ElementsAre("ib_read_bw"));
  EXPECT_EQ(read->line_gb_per_s, 25);
  EXPECT_THAT(Find(levels, "ucx_perftest ucp_am_bw rdma to GPU 0")->beside,
              ElementsAre("ucx_perftest ucp_am_bw rdma", "ib_read_bw to GPU 0"));
}

TEST(Levels, FewAreQuick) {
  Survey survey = WithPort(false, {});
  survey.tools = {"ib_read_bw", "ib_write_bw", "ucx_perftest", "iperf3"};
  survey.machine.congestion_control = "cubic";
  std::vector<std::string> quick;
  for (const Level& level :
       LinkLevels({.here = "a", .there = "b"}, survey, survey, {"tcp", "ucx"})) {
    if (level.quick) quick.push_back(level.name());
  }
  EXPECT_THAT(quick, ElementsAre("socket cubic x1", "socket cubic x8", "ib_read_bw", "tcp",
                                 "ucx d:1", "ucx"));
}

TEST(Levels, ManyToOneStandBesideSocketsFromTheSameHosts) {
  const std::vector<Level> levels =
      ManyToOneLevels({{.here = "a", .there = "b"}, {.here = "a", .there = "c"}}, {"shm", "tcp"});
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_EQ(levels[1].name(), "tcp");
  EXPECT_THAT(levels[1].beside, ElementsAre(levels[0].name()));
}

Row RowOfPair(const std::string& sender, const std::string& reader, double gb_per_s) {
  Row row;
  row.system = "socket";
  row.variant = "cubic x8";
  row.setup = {.workload = kPairWorkload,
               .element_bytes = 1 << 20,
               .hosts = {.here = reader, .there = sender}};
  const auto bytes = static_cast<int64_t>(gb_per_s * 1e9);
  row.pairs = {{.side = {.done = {.seconds = 1, .elements = 9, .bytes = bytes},
                         .cpu_seconds = {{"limit", 0.5}}}}};
  return row;
}

TEST(Pairs, RowsGoFromHostToHost) {
  Row measured = RowOfPair("b", "a", 1.5);
  Row left_out;
  left_out.system = "ib_read_bw";
  left_out.status = absl::NotFoundError("not installed");
  const nlohmann::json told = ToJson(std::vector{measured, left_out});
  const absl::StatusOr<std::vector<Row>> rows = RowsOf(told);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(ToJson(*rows), told);
  EXPECT_DOUBLE_EQ(Summarize((*rows)[0]).gb_per_s, 1.5);
  EXPECT_EQ((*rows)[1].status, left_out.status);
  EXPECT_FALSE(RowsOf(nullptr).ok());
  EXPECT_FALSE(RowsOf({{{"system", 7}}}).ok());
}

TEST(Pairs, AMatrixShowsTheSlowestLink) {
  Row failed = RowOfPair("b", "a", 1);
  failed.pairs.clear();
  failed.status = absl::UnavailableError("it is gone");
  const Matrix matrix =
      MatrixOf({RowOfPair("b", "a", 1.5), failed, RowOfPair("a", "b", 0.25),
                RowOfPair("c", "a", 1.75), RowOfPair("a", "c", 2), RowOfPair("a", "c", 1)});
  EXPECT_THAT(matrix.table.head, ElementsAre("reader", "a", "b", "c", ""));
  EXPECT_THAT(matrix.table.lines, ElementsAre(ElementsAre("a", "-", "1.50", "1.75", ""),
                                              ElementsAre("b", "0.250", "-", "-", ""),
                                              ElementsAre("c", "2.00", "-", "-", "")));
  EXPECT_EQ(matrix.slowest, "slowest: a to b, 0.250 GB/s; the median is 1.62 GB/s");
  EXPECT_TRUE(MatrixOf({Row()}).table.lines.empty());
}

TEST(Rows, SayWhichShareOfTheLineTheyHave) {
  Row row;
  row.line_gb_per_s = 25;
  row.pairs.push_back({.side = {.done = {.seconds = 1, .elements = 20, .bytes = 20'000'000'000}}});
  EXPECT_DOUBLE_EQ(Summarize(row).line_share, 0.8);
}

// A side that brings `rate` elements a second, and fails after `turns` windows.
class Fixed final : public Side {
 public:
  Fixed(double rate, int turns) : rate_(rate), turns_(turns) {}
  std::string name() const override { return "fixed"; }
  const Roles& roles() const override { return roles_; }
  std::set<std::string> lanes() const override { return {"tcp/eth0"}; }
  bool starts_anew() const override { return true; }
  absl::StatusOr<Done> Read(double seconds) override {
    if (turns_-- == 0) return absl::UnavailableError("it fell over");
    return Done{.seconds = seconds, .elements = rate_ * seconds, .bytes = 1000};
  }

 private:
  const double rate_;
  int turns_;
  const Roles roles_;
};

Level Runs(const std::string& system, double rate, int turns, std::vector<std::string> beside) {
  return {.system = system,
          .beside = std::move(beside),
          .start = [=](int64_t, const std::string&) -> absl::StatusOr<std::unique_ptr<Side>> {
            return std::make_unique<Fixed>(rate, turns);
          }};
}

TEST(RunLevels, PutsEachBesideItsLimitsAndSaysWhyOthersDidNotRun) {
  std::vector<Level> levels = {Runs("wire", 100, 9, {}), Runs("tool", 80, 2, {"wire"}),
                               Runs("late", 50, 9, {"wire", "tool", "absent"})};
  levels.push_back({.system = "absent", .left_out = absl::NotFoundError("not installed")});
  const std::vector<Row> rows =
      RunLevels({.workload = kHostWorkload, .sizes = {1000}, .rounds = 3, .window_s = 1}, levels);
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    lines.push_back(absl::StrCat(row.system, "/", row.limit, ": ", row.pairs.size(), " ",
                                 Summarize(row).ratio, " ", row.status.message()));
  }
  EXPECT_THAT(lines, ElementsAre("absent/: 0 -1 not installed", "wire/: 3 -1 ",
                                 "tool/wire: 2 0.8 it fell over", "late/wire: 3 0.5 ",
                                 "late/tool: 2 0.625 "));
  EXPECT_THAT(rows[1].lanes, ElementsAre("tcp/eth0"));
}

}  // namespace
}  // namespace penstock::bench
