// SPDX-License-Identifier: Apache-2.0
#include "bench/cluster/survey.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/process.h"
#include "include/status_macros.h"
#include "tools/doctor/machine.h"

namespace penstock::bench {
namespace {

using nlohmann::json;
namespace verbs = transfer::verbs;

constexpr absl::Duration kShellBound = absl::Minutes(2);  // for a remote shell

bool Installed(const std::string& program) {
  const char* const path = std::getenv("PATH");
  for (const auto folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    if (::access(absl::StrCat(folder, "/", program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// Returns the help text of a program.
std::string HelpOf(const std::string& program) {
  std::string help;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> output(
      ::popen(absl::StrCat(program, " -h 2>&1 < /dev/null").c_str(), "r"), ::pclose);
  if (output == nullptr) return help;
  char bytes[4096];
  while (const size_t got = std::fread(bytes, 1, sizeof bytes, output.get())) {
    help.append(bytes, got);
  }
  return help;
}

std::string NumericText(const sockaddr* address) {
  const socklen_t bytes = address->sa_family == AF_INET    ? sizeof(sockaddr_in)
                          : address->sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                           : 0;
  char text[NI_MAXHOST] = "";
  if (bytes == 0 ||
      ::getnameinfo(address, bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  return text;
}

// Returns the network interface that has the address of `host`; "" if there is none.
std::string InterfaceOf(const std::string& host) {
  addrinfo* found = nullptr;
  if (host.empty() || ::getaddrinfo(host.c_str(), nullptr, nullptr, &found) != 0) return "";
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> found_freed(found, ::freeaddrinfo);
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all_freed(all, ::freeifaddrs);
  for (const addrinfo* wanted = found; wanted != nullptr; wanted = wanted->ai_next) {
    const std::string text = NumericText(wanted->ai_addr);
    for (const ifaddrs* one = all; one != nullptr && !text.empty(); one = one->ifa_next) {
      if (one->ifa_addr != nullptr && NumericText(one->ifa_addr) == text) return one->ifa_name;
    }
  }
  return "";
}

std::string KindOf(const verbs::Gid& gid) {
  if (gid.type == verbs::GidType::kRoceV1) return "RoCE v1";
  if (absl::StartsWith(gid.address, "::ffff:")) return "RoCE v2 IPv4";
  return absl::StartsWith(gid.address, "fe80:") ? "RoCE v2 link-local" : "RoCE v2 IPv6";
}

RdmaPort Describe(const verbs::Device& device, const verbs::Port& port) {
  RdmaPort described{.device = device.name,
                     .number = port.number,
                     .ethernet = port.link_layer == verbs::LinkLayer::kEthernet,
                     .gigabits_per_s = port.gigabits_per_s};
  if (described.ethernet) {
    for (const verbs::Gid& gid : port.gids) described.gids.emplace(KindOf(gid), gid.index);
  }
  return described;
}

}  // namespace

const std::vector<std::string>& GidKinds() {
  static const auto& kinds = *new std::vector<std::string>{"RoCE v2 IPv4", "RoCE v2 IPv6",
                                                           "RoCE v2 link-local", "RoCE v1"};
  return kinds;
}

const std::vector<std::string>& KnownTools() {
  static const auto& tools =
      *new std::vector<std::string>{"iperf3",       "ib_read_bw", "ib_read_lat",  "ib_write_bw",
                                    "ucx_perftest", "nixlbench",  "sendrecv_perf"};
  return tools;
}

std::string Called(const Survey& survey, const std::string& address) {
  return survey.name == address || address.empty() ? survey.name
                                                   : absl::StrCat(survey.name, " (", address, ")");
}

absl::StatusOr<RdmaPort> ChoosePort(const std::vector<verbs::Device>& devices,
                                    const std::string& wanted) {
  std::string passed;  // candidates that were rejected
  for (const verbs::Device& device : devices) {
    if (!wanted.empty() && device.name != wanted) continue;
    if (!device.status.ok()) {
      absl::StrAppend(&passed, "; ", device.name, ": ", device.status.message());
    }
    for (const verbs::Port& port : device.ports) {
      if (port.state == verbs::PortState::kActive) return Describe(device, port);
      absl::StrAppend(&passed, "; port ", port.number, " of ", device.name, " is not active");
    }
  }
  return absl::NotFoundError(absl::StrCat(
      wanted.empty() ? "no RDMA device" : absl::StrCat("no active RDMA device ", wanted), passed));
}

Survey SurveyHere(const std::string& address, const std::string& rdma_device) {
  Survey survey{.machine = ThisMachine(), .interface = InterfaceOf(address)};
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  survey.name = name;
  for (const std::string& tool : KnownTools()) {
    if (Installed(tool)) survey.tools.insert(tool);
  }
  if (survey.tools.contains("ib_read_bw")) {
    const std::string help = HelpOf("ib_read_bw");
    if (absl::StrContains(help, "--use_cuda=")) survey.gpu_options.insert(kUseCuda);
    if (absl::StrContains(help, kUseDmabuf)) survey.gpu_options.insert(kUseDmabuf);
  }
  if (survey.tools.contains("ucx_perftest") &&
      absl::StrContains(HelpOf("ucx_perftest"), " cuda - ")) {
    survey.gpu_options.insert(kCudaMemory);
  }
  const absl::StatusOr<int> gpus = CountGpus();
  survey.gpus = gpus.value_or(0);
  survey.no_gpu = std::string(gpus.status().message());
  const absl::StatusOr<std::vector<verbs::Device>> devices = verbs::ListDevices();
  const absl::StatusOr<RdmaPort> port =
      devices.ok() ? ChoosePort(*devices, rdma_device)
                   : absl::StatusOr<RdmaPort>(Annotate(absl::NotFoundError("no RDMA device"),
                                                       devices.status().message()));
  if (port.ok()) survey.rdma = *port;
  survey.no_rdma = std::string(port.status().message());
  const auto probe = doctor::MakeMachineProbe();
  if (!survey.interface.empty()) {
    survey.machine.adapters = AdaptersOfInterface(*probe, survey.interface);
  }
  if (port.ok()) {
    survey.machine.adapters.push_back(AdapterOfPort(
        *probe, port->device, absl::StrCat(port->device, ":", port->number), port->gigabits_per_s));
  }
  return survey;
}

absl::StatusOr<Survey> SurveyThere(const Hosts& hosts, const std::string& rdma_device,
                                   const std::string& scratch) {
  std::vector<std::string> words = hosts.run_there;
  words.insert(words.end(), {"bench-survey", hosts.there});
  if (!rdma_device.empty()) words.push_back(rdma_device);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Process> process,
      Process::Start(words, Process::Ends::kBySignal, absl::StrCat(scratch, "/survey.log")));
  ASSIGN_OR_RETURN(const std::string line, process->ReadLine(kShellBound));
  return SurveyOf(json::parse(line, nullptr, /*allow_exceptions=*/false));
}

json ToJson(const Survey& survey) {
  const Machine& machine = survey.machine;
  json fields = {{"version", Version()},
                 {"name", survey.name},
                 {"interface", survey.interface},
                 {"tools", survey.tools},
                 {"no_rdma", survey.no_rdma},
                 {"gpus", survey.gpus},
                 {"no_gpu", survey.no_gpu},
                 {"gpu_options", survey.gpu_options},
                 {"machine",
                  {{"processor", machine.processor},
                   {"kernel", machine.kernel},
                   {"congestion_control", machine.congestion_control},
                   {"when", machine.when},
                   {"cores", machine.cores},
                   {"memory_gib", machine.memory_gib},
                   {"load1", machine.load1},
                   {"numa_nodes", machine.numa_nodes},
                   {"adapters", ToJson(machine.adapters)}}}};
  if (survey.rdma) {
    fields["rdma"] = {{"device", survey.rdma->device},
                      {"number", survey.rdma->number},
                      {"ethernet", survey.rdma->ethernet},
                      {"gigabits_per_s", survey.rdma->gigabits_per_s},
                      {"gids", survey.rdma->gids}};
  }
  return fields;
}

absl::StatusOr<Survey> SurveyOf(const json& fields) {
  if (!fields.is_object() || fields.value("version", json()) != Version()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the other host has another version of Penstock than this one, which is ", Version()));
  }
  try {  // the library reports a field of another type only by an exception
    const json& machine = fields.at("machine");
    Survey survey{.name = fields.at("name"),
                  .machine = {.processor = machine.at("processor"),
                              .kernel = machine.at("kernel"),
                              .congestion_control = machine.at("congestion_control"),
                              .when = machine.at("when"),
                              .cores = machine.at("cores"),
                              .memory_gib = machine.at("memory_gib"),
                              .load1 = machine.at("load1"),
                              .numa_nodes = machine.at("numa_nodes"),
                              .adapters = AdaptersOf(machine.at("adapters"))},
                  .interface = fields.at("interface"),
                  .tools = fields.at("tools").get<std::set<std::string>>(),
                  .no_rdma = fields.at("no_rdma"),
                  .gpus = fields.at("gpus"),
                  .no_gpu = fields.at("no_gpu"),
                  .gpu_options = fields.at("gpu_options").get<std::set<std::string>>()};
    if (const auto rdma = fields.find("rdma"); rdma != fields.end()) {
      survey.rdma = RdmaPort{.device = rdma->at("device"),
                             .number = rdma->at("number"),
                             .ethernet = rdma->at("ethernet"),
                             .gigabits_per_s = rdma->at("gigabits_per_s"),
                             .gids = rdma->at("gids").get<std::map<std::string, int>>()};
    }
    return survey;
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("the other host's survey: ", error.what()));
  }
}

}  // namespace penstock::bench
