// SPDX-License-Identifier: Apache-2.0
// A host's means to measure its links: ports, GPUs and programs.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/hosts.h"
#include "bench/machine.h"
#include "dataplane/transfer/verbs/devices.h"

namespace penstock::bench {

struct RdmaPort {
  std::string device;
  int number = 0;
  bool ethernet = false;
  double gigabits_per_s = 0;
  std::map<std::string, int> gids;  // index by kind (GidKinds()); only for Ethernet
};

// Returns the kinds, best first. Between two ports, the first kind that both have is used.
const std::vector<std::string>& GidKinds();

struct Survey {
  std::string name;  // the host's own name
  Machine machine;
  std::string interface;        // with the address of the link; empty: unknown
  std::set<std::string> tools;  // those of KnownTools() that are installed
  std::optional<RdmaPort> rdma;
  std::string no_rdma;  // reason if there is none
  int gpus = 0;
  std::string no_gpu;                 // reason if there is none
  std::set<std::string> gpu_options;  // those of the options below that its tools have
};

// Options with which tools move data to or from GPU memory: two of perftest, for the driver's peer
// memory and for dma-buf, and one of ucx_perftest.
inline constexpr char kUseCuda[] = "--use_cuda", kUseDmabuf[] = "--use_cuda_dmabuf",
                      kCudaMemory[] = "-m cuda";

// Returns the number of GPUs that NVIDIA's driver shows to this process (gpu.cc). NotFound or
// Unavailable, with the reason, if there are none.
absl::StatusOr<int> CountGpus();

// Returns "a (10.0.0.1)": the host's own name, and the address at which it is reached.
std::string Called(const Survey& survey, const std::string& address);

// Returns the programs that levels run.
const std::vector<std::string>& KnownTools();

// Returns the first active port of `devices`, or of the device called `wanted`. NotFound, with the
// reason, if there is none.
absl::StatusOr<RdmaPort> ChoosePort(const std::vector<transfer::verbs::Device>& devices,
                                    const std::string& wanted);

// Examines this host, whose end of the link has `address`. "" for `rdma_device`: any device.
Survey SurveyHere(const std::string& address, const std::string& rdma_device);
// Examines the other host with `penstock bench-survey` there. Unavailable, with its last output, if
// that fails.
absl::StatusOr<Survey> SurveyThere(const Hosts& hosts, const std::string& rdma_device,
                                   const std::string& scratch);

nlohmann::json ToJson(const Survey& survey);
// Reads a survey. InvalidArgument for other JSON.
absl::StatusOr<Survey> SurveyOf(const nlohmann::json& json);

}  // namespace penstock::bench
