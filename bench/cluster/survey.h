// SPDX-License-Identifier: Apache-2.0
// What a host has with which its links can be measured.
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
  std::map<std::string, int> gids;  // index by kind, see GidKinds(); of Ethernet only
};

// Best first: with two ports a kind that both have is taken.
const std::vector<std::string>& GidKinds();

struct Survey {
  std::string name;  // that the host gives itself
  Machine machine;
  std::string interface;        // that has the address of the link; empty: not known
  std::set<std::string> tools;  // those of KnownTools() that are installed
  std::optional<RdmaPort> rdma;
  std::string no_rdma;  // why there is none
  int gpus = 0;
  std::string no_gpu;                 // why there is none
  std::set<std::string> gpu_options;  // those below that its tools have
};

// Options by which tools move to or from a GPU's memory: of perftest, by the driver's peer memory
// or by dma-buf, and of ucx_perftest.
inline constexpr char kUseCuda[] = "--use_cuda", kUseDmabuf[] = "--use_cuda_dmabuf",
                      kCudaMemory[] = "-m cuda";

// GPUs that NVIDIA's driver shows to this process (gpu.cc). NotFound or Unavailable, with the
// reason, if it has none.
absl::StatusOr<int> CountGpus();

// "a (10.0.0.1)": the name the host gives itself, and how it is reached.
std::string Called(const Survey& survey, const std::string& address);

// Programs that levels run.
const std::vector<std::string>& KnownTools();

// The first active port of `devices`, or of the one called `wanted`; NotFound says
// why there is none.
absl::StatusOr<RdmaPort> ChoosePort(const std::vector<transfer::verbs::Device>& devices,
                                    const std::string& wanted);

// This host, whose end of the link has that address; "" for `rdma_device`: any.
Survey SurveyHere(const std::string& address, const std::string& rdma_device);
// The other, through `penstock bench-survey` there. Unavailable, with what it said last.
absl::StatusOr<Survey> SurveyThere(const Hosts& hosts, const std::string& rdma_device,
                                   const std::string& scratch);

nlohmann::json ToJson(const Survey& survey);
// InvalidArgument if that is no survey.
absl::StatusOr<Survey> SurveyOf(const nlohmann::json& json);

}  // namespace penstock::bench
