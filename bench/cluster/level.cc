// SPDX-License-Identifier: Apache-2.0
#include "bench/cluster/level.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/cluster/perftest.h"
#include "bench/limits/limits.h"
#include "bench/scratch.h"
#include "bench/service.h"
#include "bench/workload.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

constexpr int kStreams[] = {1, 4, 8};
constexpr int kQuickStreams = 8;
constexpr int kConnections = 4;  // must be one of kStreams
constexpr char kToGpu[] = "to GPU 0";
constexpr char kCubic[] = "cubic";

std::string NameOf(const RdmaPort& port) {
  return absl::StrCat(port.device, ":", port.number);
}

// Returns "mlx5_0:1", or "mlx5_0:1 from mlx5_3:1".
std::string PathText(const RdmaPath& path) {
  const std::string here = NameOf(path.here), there = NameOf(path.there);
  return here == there ? here : absl::StrCat(here, " from ", there);
}

double LineRate(const RdmaPath& path) {
  return std::min(path.here.gigabits_per_s, path.there.gigabits_per_s) / 8;
}

Setup SetupOf(const std::string& protocol, int64_t bytes, const Hosts& hosts,
              const std::string& scratch) {
  return {.workload = std::string(T1Zero().name()),
          .protocol = protocol,
          .element_bytes = bytes,
          .source_bytes = bytes,
          .scratch = scratch,
          .hosts = hosts};
}

Level LeftOut(Level level, absl::Status why) {
  level.left_out = std::move(why);
  level.start = nullptr;
  return level;
}

// Our transports with the workload T1-0: buffers made once; the trainer reads a byte of each page.
Level Ours(const std::string& protocol, const Hosts& hosts, std::vector<std::string> beside) {
  return {.protocol = protocol,
          .beside = std::move(beside),
          .start =
              [protocol, hosts](int64_t bytes, const std::string& scratch) {
                return StartService(SetupOf(protocol, bytes, hosts, scratch), protocol);
              },
          .quick = true};
}

// Our tcp over several connections, each with a thread at both ends.
Level OursOverConnections(const Hosts& hosts, int connections, std::vector<std::string> beside) {
  return {
      .protocol = "tcp",
      .variant = absl::StrCat("x", connections),
      .beside = std::move(beside),
      .start = [=](int64_t bytes, const std::string& scratch) {
        Setup setup = SetupOf("tcp", bytes, hosts, scratch);
        setup.trainer_variables = {absl::StrCat("PENSTOCK_CLIENT_TCP_CONNECTIONS=", connections)};
        return StartService(setup, "tcp");
      }};
}

// Restricts `setup` to one port at each end, as perftest and ucx_perftest use.
void GoOver(const RdmaPath& path, Setup& setup) {
  const auto variables = [](const RdmaPort& port) {
    return std::vector<std::string>{"PENSTOCK_UCX_MAX_RNDV_RAILS=1",
                                    absl::StrCat("PENSTOCK_UCX_NET_DEVICES=", NameOf(port))};
  };
  setup.trainer_variables = variables(path.here);
  setup.worker_variables = variables(path.there);
}

Level OursOverPath(const Hosts& hosts, const RdmaPath& path, std::vector<std::string> beside) {
  return {.protocol = "ucx",
          .variant = PathText(path),
          .beside = std::move(beside),
          .start =
              [=](int64_t bytes, const std::string& scratch) {
                Setup setup = SetupOf("ucx", bytes, hosts, scratch);
                GoOver(path, setup);
                return StartService(setup, "ucx");
              },
          .line_gb_per_s = LineRate(path),
          .quick = true};
}

// The latency of one element: from the request until it is received. `path`: for ucx over RDMA.
Level OneAtATime(const std::string& protocol, const Hosts& hosts,
                 const std::optional<RdmaPath>& path) {
  return {.protocol = protocol,
          .variant = "one at a time",
          .beside = path.has_value()
                        ? std::vector<std::string>{"ib_read_lat", "ucx_perftest ucp_am_lat rdma"}
                        : std::vector<std::string>{"ucx_perftest ucp_am_lat tcp"},
          .start = [=](int64_t bytes, const std::string& scratch) {
            Setup setup = SetupOf(protocol, bytes, hosts, scratch);
            setup.workload = std::string(T1OneAtATime().name());
            if (path.has_value()) GoOver(*path, setup);
            return StartService(setup, protocol);
          }};
}

Load LoadOf(int64_t bytes, const Hosts& hosts, const std::string& scratch) {
  return {.element_bytes = bytes,
          .source_bytes = bytes,
          .touch = Touch::kEveryPage,
          .hosts = hosts,
          .scratch = scratch};
}

std::string SocketVariant(const std::string& congestion, int streams) {
  return absl::StrCat(congestion, " x", streams);
}

// `streams` streams, each written by its own process and read by its own thread.
Level Sockets(const Hosts& hosts, const std::string& congestion, int streams) {
  return {.system = "socket",
          .variant = SocketVariant(congestion, streams),
          .start = [=](int64_t bytes,
                       const std::string& scratch) -> absl::StatusOr<std::unique_ptr<Side>> {
            std::vector<std::unique_ptr<Side>> sides;
            for (int i = 0; i < streams; ++i) {
              ASSIGN_OR_RETURN(sides.emplace_back(),
                               MakeSocketLimit(LoadOf(bytes, hosts, scratch), congestion));
            }
            return MakeTogether(std::move(sides));
          },
          .quick = streams == kQuickStreams};
}

// Makes levels that run other projects' programs. If one cannot run, its level is left out.
class ToolLevels {
 public:
  ToolLevels(const Hosts& hosts, const Survey& here, const Survey& there)
      : hosts_(hosts),
        here_(here),
        there_(there),
        here_name_(Called(here, hosts.here)),
        there_name_(Called(there, hosts.there)),
        path_(FindPath(here_name_, here, there_name_, there)) {}

  const absl::StatusOr<RdmaPath>& path() const { return path_; }

  Level Iperf(int streams) const {
    return Make({.system = "iperf3", .variant = SocketVariant(kCubic, streams)}, "iperf3",
                absl::OkStatus(),
                [streams](Tool tool) { return bench::Iperf(std::move(tool), streams, kCubic); });
  }

  Level Verbs(const std::string& program) const {
    return Make({.system = program,
                 .line_gb_per_s = path_.ok() && program != "ib_read_lat" ? LineRate(*path_) : 0,
                 .quick = program == "ib_read_bw"},
                program, path_.status(), [program, path = path_.value_or(RdmaPath())](Tool tool) {
                  return Perftest(std::move(tool), program, path);
                });
  }

  // Reads into GPU memory of the reading host. The other end is host memory, as on a worker.
  Level ReadIntoGpu(bool dmabuf) const {
    std::vector<std::string> words = {absl::StrCat(kUseCuda, "=0")};
    if (dmabuf) words.emplace_back(kUseDmabuf);
    Level level = Make({.system = "ib_read_bw",
                        .variant = dmabuf ? "to GPU 0 by dma-buf" : kToGpu,
                        .beside = {"ib_read_bw"},
                        .line_gb_per_s = path_.ok() ? LineRate(*path_) : 0},
                       "ib_read_bw", Both(GpuOf(here_, here_name_), path_.status()),
                       [words, path = path_.value_or(RdmaPath())](Tool tool) {
                         return Perftest(std::move(tool), "ib_read_bw", path, words);
                       });
    return WithOption(std::move(level), dmabuf ? kUseDmabuf : kUseCuda, {{&here_, &here_name_}});
  }

  Level UcxIntoGpu() const {
    Level level =
        Ucx("ucp_am_bw", absl::StrCat("rdma ", kToGpu),
            {"ucx_perftest ucp_am_bw rdma", absl::StrCat("ib_read_bw ", kToGpu)},
            Both(Both(GpuOf(here_, here_name_), GpuOf(there_, there_name_)), path_.status()),
            OverPath("UCX_TLS=rc,dc,cuda_copy", /*to_gpu=*/true));
    level.line_gb_per_s = path_.ok() ? LineRate(*path_) : 0;
    return WithOption(std::move(level), kCudaMemory,
                      {{&here_, &here_name_}, {&there_, &there_name_}});
  }

  // T1-0 into the GPU of the reading host. Only the ends of each element are copied back.
  Level OursIntoGpu(const std::string& protocol, std::vector<std::string> beside) const {
    Level level{.protocol = protocol, .variant = kToGpu, .beside = std::move(beside)};
    if (absl::Status no_gpu = GpuOf(here_, here_name_); !no_gpu.ok()) {
      return LeftOut(std::move(level), std::move(no_gpu));
    }
    const auto path = protocol == "ucx" && path_.ok() ? std::optional(*path_) : std::nullopt;
    if (path.has_value()) level.line_gb_per_s = LineRate(*path);
    level.start = [protocol, path, hosts = hosts_](int64_t bytes, const std::string& scratch) {
      Setup setup = SetupOf(protocol, bytes, hosts, scratch);
      setup.device = "GPU:0";
      if (path.has_value()) GoOver(*path, setup);
      return StartService(setup, absl::StrCat(protocol, " ", kToGpu));
    };
    return level;
  }

  Level UcxOverRdma(const std::string& test) const {
    const bool latency = test == "ucp_am_lat";
    const std::string beside =
        latency ? "ib_read_lat" : (test == "ucp_put_bw" ? "ib_write_bw" : "ib_read_bw");
    Level level =
        Ucx(test, "rdma", {beside}, path_.status(), OverPath("UCX_TLS=rc,dc", /*to_gpu=*/false));
    if (!latency && path_.ok()) level.line_gb_per_s = LineRate(*path_);
    return level;
  }

  Level UcxOverTcp(const std::string& test, std::vector<std::string> beside) const {
    const auto lanes = [](const Survey& survey) {
      std::vector<std::string> variables = {"UCX_TLS=tcp"};
      if (!survey.interface.empty()) {
        variables.push_back(absl::StrCat("UCX_NET_DEVICES=", survey.interface));
      }
      return variables;
    };
    return Ucx(test, "tcp", std::move(beside), absl::OkStatus(),
               {.here = lanes(here_), .there = lanes(there_)});
  }

  // UCX notices a peer's failure through shared memory only with UCX_MM_ERROR_HANDLING.
  Level UcxOverMemory(const std::string& test, bool error_handling) const {
    std::vector<std::string> lanes = {"UCX_TLS=posix,self"};
    if (error_handling) lanes.push_back("UCX_MM_ERROR_HANDLING=y");
    return Ucx(test, error_handling ? "posix, error handling" : "posix", {"memcpy"},
               absl::OkStatus(), {.here = lanes, .there = lanes, .error_handling = error_handling});
  }

  // A level that we do not start, because it needs more than two programs at two ends.
  Level NotStarted(const std::string& program, const std::string& why) const {
    const absl::Status missing = Missing(program);
    return LeftOut({.system = program},
                   missing.ok() ? absl::UnimplementedError(absl::StrCat("not started by us: ", why))
                                : missing);
  }

 private:
  static absl::Status GpuOf(const Survey& survey, const std::string& name) {
    if (survey.gpus > 0) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat("on ", name, ": ", survey.no_gpu));
  }

  // Returns the first error.
  static absl::Status Both(absl::Status first, absl::Status second) {
    return first.ok() ? std::move(second) : std::move(first);
  }

  // Returns the level; left out if a tool of one of these hosts lacks the option.
  static Level WithOption(Level level, const char* option,
                          const std::vector<std::pair<const Survey*, const std::string*>>& hosts) {
    for (const auto& [survey, name] : hosts) {
      if (!level.left_out.ok() || survey->gpu_options.contains(option)) continue;
      absl::Status why = absl::UnimplementedError(
          absl::StrCat(level.system, " on ", *name, " was built without CUDA: it has no ", option));
      level = LeftOut(std::move(level), std::move(why));
    }
    return level;
  }

  UcxEnds OverPath(const std::string& transports, bool to_gpu) const {
    const auto lanes = [&](const RdmaPort& port) {
      return std::vector<std::string>{transports, "UCX_MAX_RNDV_RAILS=1",
                                      absl::StrCat("UCX_NET_DEVICES=", NameOf(port))};
    };
    const RdmaPath path = path_.value_or(RdmaPath());
    return {.here = lanes(path.here), .there = lanes(path.there), .to_gpu = to_gpu};
  }

  absl::Status Missing(const std::string& program) const {
    std::vector<std::string> hosts;
    if (!here_.tools.contains(program)) hosts.push_back(here_name_);
    if (hosts_.two() && !there_.tools.contains(program)) hosts.push_back(there_name_);
    if (hosts.empty()) return absl::OkStatus();
    return absl::NotFoundError(
        absl::StrCat(program, " is not installed on ", absl::StrJoin(hosts, " and ")));
  }

  Level Ucx(const std::string& test, const std::string& lanes, std::vector<std::string> beside,
            const absl::Status& possible, const UcxEnds& ends) const {
    return Make(
        {.system = "ucx_perftest", .protocol = test, .variant = lanes, .beside = std::move(beside)},
        "ucx_perftest", possible,
        [test, ends](Tool tool) { return UcxPerftest(std::move(tool), test, ends); });
  }

  template <class Complete>
  Level Make(Level level, const std::string& program, const absl::Status& possible,
             Complete complete) const {
    if (!possible.ok()) return LeftOut(std::move(level), possible);
    if (absl::Status missing = Missing(program); !missing.ok()) {
      return LeftOut(std::move(level), std::move(missing));
    }
    level.start = [hosts = hosts_, complete](
                      int64_t bytes,
                      const std::string& scratch) -> absl::StatusOr<std::unique_ptr<Side>> {
      return MakeToolSide(
          complete(Tool{.element_bytes = bytes, .hosts = hosts, .scratch = scratch}));
    };
    return level;
  }

  const Hosts& hosts_;
  const Survey &here_, &there_;
  const std::string here_name_, there_name_;
  const absl::StatusOr<RdmaPath> path_;
};

bool Chosen(const std::vector<std::string>& protocols, const std::string& protocol) {
  return std::find(protocols.begin(), protocols.end(), protocol) != protocols.end();
}

}  // namespace

std::string Level::name() const {
  std::vector<std::string> words;
  for (const std::string& word : {system == "penstock" ? "" : system, protocol, variant}) {
    if (!word.empty()) words.push_back(word);
  }
  return absl::StrJoin(words, " ");
}

std::vector<Level> HostLevels(const Survey& here, const std::vector<std::string>& protocols) {
  const Hosts one;
  const ToolLevels tools(one, here, here);
  std::vector<Level> levels;
  levels.push_back({.system = "memcpy",
                    .start = [](int64_t bytes, const std::string& /*scratch*/)
                        -> absl::StatusOr<std::unique_ptr<Side>> { return MakeMemcpySide(bytes); },
                    .quick = true});
  levels.push_back({.system = "fill1",
                    .start =
                        [](int64_t bytes, const std::string& scratch) {
                          return MakeFillLimit(LoadOf(bytes, {}, scratch));
                        },
                    .quick = true});
  for (const bool error_handling : {false, true}) {
    levels.push_back(tools.UcxOverMemory("ucp_am_bw", error_handling));
  }
  for (const char* protocol : {"local", "shm"}) {
    if (Chosen(protocols, protocol)) levels.push_back(Ours(protocol, one, {"fill1", "memcpy"}));
  }
  for (Level& level : GpuLevels()) levels.push_back(std::move(level));
  if (Chosen(protocols, "shm")) {
    levels.push_back(tools.OursIntoGpu("shm", {"cuMemcpy pinned to GPU 0"}));
  }
  return levels;
}

std::vector<Level> LinkLevels(const Hosts& hosts, const Survey& here, const Survey& there,
                              const std::vector<std::string>& protocols) {
  const ToolLevels tools(hosts, here, there);
  std::vector<Level> levels;
  for (const int streams : kStreams) levels.push_back(Sockets(hosts, kCubic, streams));
  const std::string& usual = there.machine.congestion_control;  // on the sending host
  if (usual != kCubic) levels.push_back(Sockets(hosts, usual, 1));
  // The levels that our sockets are compared with.
  for (Level& level : levels) level.quick |= level.variant == SocketVariant(usual, 1);
  for (const int streams : kStreams) levels.push_back(tools.Iperf(streams));
  for (const char* program : {"ib_read_bw", "ib_write_bw", "ib_read_lat"}) {
    levels.push_back(tools.Verbs(program));
  }
  // A level that exists between any two hosts.
  const std::string machines = absl::StrCat("socket ", SocketVariant(usual, 1));
  for (const char* test : {"ucp_am_bw", "ucp_get", "ucp_put_bw", "ucp_am_lat"}) {
    levels.push_back(tools.UcxOverRdma(test));
  }
  for (const bool dmabuf : {false, true}) levels.push_back(tools.ReadIntoGpu(dmabuf));
  levels.push_back(tools.UcxIntoGpu());
  levels.push_back(tools.UcxOverTcp("ucp_am_bw", {machines}));
  levels.push_back(tools.UcxOverTcp("ucp_am_lat", {}));
  levels.push_back(tools.NotStarted("nixlbench", "it needs an etcd server"));
  levels.push_back(tools.NotStarted("sendrecv_perf", "nccl-tests are started by mpirun"));
  for (const std::string& protocol : protocols) {
    if (protocol == "local" || protocol == "shm") continue;  // only within a host
    std::vector<std::string> beside = {machines};
    std::vector<std::string> beside_to_gpu = beside;
    if (protocol == "ucx" && tools.path().ok()) {
      levels.push_back(
          OursOverPath(hosts, *tools.path(), {"ib_read_bw", "ucx_perftest ucp_am_bw rdma"}));
      beside.clear();  // ucx uses as many ports as it chooses, unlike every tool
      beside_to_gpu = {absl::StrCat("ib_read_bw ", kToGpu),
                       absl::StrCat("ucx_perftest ucp_am_bw rdma ", kToGpu)};
    } else if (protocol == "ucx") {
      beside.push_back("ucx_perftest ucp_am_bw tcp");
    }
    levels.push_back(Ours(protocol, hosts, std::move(beside)));
    if (protocol != "grpc") {
      levels.push_back(tools.OursIntoGpu(protocol, std::move(beside_to_gpu)));
    }
    const bool rdma = protocol == "ucx" && tools.path().ok();
    levels.push_back(
        OneAtATime(protocol, hosts, rdma ? std::optional(*tools.path()) : std::nullopt));
    if (protocol == "tcp") {
      levels.push_back(OursOverConnections(
          hosts, kConnections, {absl::StrCat("socket ", SocketVariant(kCubic, kConnections))}));
    }
  }
  return levels;
}

std::vector<Level> ManyToOneLevels(const std::vector<Hosts>& pairs,
                                   const std::vector<std::string>& protocols) {
  const auto of_all = [&](Level level, auto start) {
    level.start = [pairs, start](
                      int64_t bytes,
                      const std::string& scratch) -> absl::StatusOr<std::unique_ptr<Side>> {
      std::vector<std::unique_ptr<Side>> sides;
      for (const Hosts& hosts : pairs) {
        ASSIGN_OR_RETURN(const std::string folder, MakeFolderIn(scratch, sides.size()));
        ASSIGN_OR_RETURN(sides.emplace_back(), start(bytes, hosts, folder));
      }
      return MakeTogether(std::move(sides));
    };
    level.quick = true;
    return level;
  };
  std::vector<Level> levels;
  levels.push_back(of_all({.system = "socket", .variant = kCubic},
                          [](int64_t bytes, const Hosts& hosts, const std::string& scratch) {
                            return MakeSocketLimit(LoadOf(bytes, hosts, scratch), kCubic);
                          }));
  const std::string sockets = levels.back().name();
  for (const std::string& protocol : protocols) {
    if (protocol == "local" || protocol == "shm") continue;  // only within a host
    levels.push_back(
        of_all({.protocol = protocol, .beside = {sockets}},
               [protocol](int64_t bytes, const Hosts& hosts, const std::string& scratch) {
                 return StartService(SetupOf(protocol, bytes, hosts, scratch), protocol);
               }));
  }
  return levels;
}

}  // namespace penstock::bench
