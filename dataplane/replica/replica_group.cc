// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "control/env/launchers.h"
#include "control/protocol/host_port.h"
#include "control/sync/random.h"
#include "control/sync/simulation.h"
#include "dataplane/memory/device/device.h"
#include "dataplane/replica/collective/collective.h"
#include "dataplane/replica/collective/rank_processes.h"
#include "dataplane/replica/parallel_for.h"
#include "include/status_macros.h"
#include "penstock/replica.h"

namespace penstock {
namespace {

thread_local bool in_replica_function = false;
[[maybe_unused]] const FiberVariable kInReplicaFunctionOfFiber(in_replica_function);

absl::StatusOr<int> NumberIn(const char* variable) {
  const char* text = std::getenv(variable);
  int number = 0;
  if (text != nullptr && absl::SimpleAtoi(text, &number) && number >= 0) return number;
  return absl::InvalidArgumentError(
      absl::StrCat(variable, " must be a non-negative integer, ",
                   text == nullptr ? "but is not set" : absl::StrCat("not '", text, "'")));
}

absl::Status DifferentLengths() {
  return absl::InvalidArgumentError(
      "Reduce needs vectors of equal length and type from all replicas of all processes");
}

std::vector<std::string> AllDevices() {
  std::vector<std::string> devices;
  const int gpus = LinkedDeviceBackend().Count().value_or(0);
  for (int i = 0; i < gpus; ++i) devices.push_back(absl::StrCat("GPU:", i));
  if (devices.empty()) devices.push_back("CPU:0");
  return devices;
}

// Returns rank 0's launch id, so that all ranks use one id, which differs from the ids of other
// launches.
absl::StatusOr<std::string> LaunchOf(replica::Collective& ranks) {
  const std::string drawn = absl::StrCat(absl::Hex(RandomNumber()));
  ASSIGN_OR_RETURN(std::vector<std::string> of_all, ranks.AllGather(drawn));
  return std::move(of_all.front());
}

}  // namespace

ReplicaGroup::ReplicaGroup(ReplicaGroupOptions options, std::vector<Device> devices)
    : options_(std::move(options)), devices_(std::move(devices)) {
  const auto& of_process = options_.replicas_of_process;
  first_replica_ = std::accumulate(of_process.begin(), of_process.begin() + options_.process, 0);
  replicas_ = std::accumulate(of_process.begin(), of_process.end(), 0);
}

absl::StatusOr<ReplicaGroup> ReplicaGroup::Create(ReplicaGroupOptions options) {
  if (options.launch.given().has_value()) options.launch_id = *options.launch.given();
  std::vector<Device> devices;
  for (const std::string& name : options.devices) {
    ASSIGN_OR_RETURN(devices.emplace_back(), ParseDevice(name));
  }
  if (devices.empty()) return absl::InvalidArgumentError("devices must not be empty");
  const auto here = static_cast<int>(devices.size());
  if (options.replicas_of_process.empty()) options.replicas_of_process = {here};
  const auto processes = static_cast<int>(options.replicas_of_process.size());
  if (options.process < 0 || options.process >= processes) {
    return absl::InvalidArgumentError(absl::StrCat("process must be in [0, ", processes,
                                                   "), the range of replicas_of_process, not ",
                                                   options.process));
  }
  for (const int replicas : options.replicas_of_process) {
    if (replicas < 1 || replicas > 1 << 20) {
      return absl::InvalidArgumentError(
          absl::StrCat("each entry of replicas_of_process must be at least 1, not ", replicas));
    }
  }
  if (options.replicas_of_process[options.process] != here) {
    return absl::InvalidArgumentError(absl::StrCat(
        "replicas_of_process has ", options.replicas_of_process[options.process], " for process ",
        options.process, ", which has ", here, " device(s); each replica is one device"));
  }
  return ReplicaGroup(std::move(options), std::move(devices));
}

absl::StatusOr<ReplicaGroup> ReplicaGroup::Mirrored(std::vector<std::string> devices) {
  if (devices.empty()) devices = AllDevices();
  return Create({.devices = std::move(devices)});
}

absl::StatusOr<ReplicaGroup> ReplicaGroup::FromEnvironment(std::vector<std::string> devices) {
  for (const Launcher& launcher : kLaunchers) {
    if (std::getenv(launcher.rank) == nullptr) continue;
    ASSIGN_OR_RETURN(const int rank, NumberIn(launcher.rank));
    ASSIGN_OR_RETURN(const int world, NumberIn(launcher.world));
    if (rank >= world || world > 1 << 20) {
      return absl::InvalidArgumentError(
          absl::StrCat(launcher.rank, "=", rank, " must be below ", launcher.world, "=", world));
    }
    const char* launch = std::getenv(launcher.launch);
    const auto here = static_cast<int>(devices.size());
    return Create({.devices = std::move(devices),
                   .replicas_of_process = std::vector<int>(static_cast<size_t>(world), here),
                   .process = rank,
                   .launch_id = launch == nullptr ? "" : launch});
  }
  std::vector<std::string> known;
  for (const Launcher& launcher : kLaunchers)
    known.push_back(absl::StrCat(launcher.rank, " and ", launcher.world));
  return absl::FailedPreconditionError(absl::StrCat(
      "no launcher set the number of this process: set ", absl::StrJoin(known, ", or "),
      "; or use Mirrored for one process with all replicas, or Create to describe the processes"));
}

absl::StatusOr<ReplicaGroup> ReplicaGroup::Of(ReplicaGroupOptions options) {
  return Create(std::move(options));
}

absl::StatusOr<ReplicaGroup> ReplicaGroup::EveryNth(int n) const {
  return Subsample(n);
}

absl::StatusOr<ReplicaGroup> ReplicaGroup::FromNccl(void* communicator) {
  ASSIGN_OR_RETURN(replica::NcclRanks ranks, replica::CollectiveOfNccl(communicator));
  ASSIGN_OR_RETURN(std::string launch, LaunchOf(*ranks.own));
  ASSIGN_OR_RETURN(
      ReplicaGroup group,
      Create({.devices = {absl::StrCat("GPU:", ranks.device)},
              .replicas_of_process = std::vector<int>(static_cast<size_t>(ranks.own->size()), 1),
              .process = ranks.own->rank(),
              .launch_id = std::move(launch)}));
  group.collective_ = std::move(ranks.own);
  return group;
}

absl::StatusOr<ReplicaGroup> ReplicaGroup::Connect(ConnectOptions options) const {
  if (options.address.empty() && num_processes() > 1) {
    const char* host = std::getenv("MASTER_ADDR");
    const char* port = std::getenv("MASTER_PORT");
    if (host == nullptr || port == nullptr) {
      return absl::InvalidArgumentError(
          "the address at which process 0 listens is missing: set ConnectOptions::address, or "
          "MASTER_ADDR and MASTER_PORT");
    }
    options.address = control::JoinHostPort(host, port);
  }
  ReplicaGroup group = *this;
  ASSIGN_OR_RETURN(group.collective_, replica::ConnectRanks({.address = options.address,
                                                             .launch = launch_id(),
                                                             .rank = process(),
                                                             .ranks = num_processes(),
                                                             .connect_timeout = options.timeout,
                                                             .silence = options.silence}));
  return group;
}

absl::StatusOr<ReplicaGroup> ReplicaGroup::Subsample(int n) const {
  ReplicaGroupOptions of{.devices = {},
                         .replicas_of_process = {},
                         .process = options_.process,
                         .launch_id = options_.launch_id};
  for (size_t process = 0; process < options_.replicas_of_process.size(); ++process) {
    const int replicas = options_.replicas_of_process[process];
    if (n < 1 || replicas % n != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("groups of ", n, " replicas are not possible: process ", process, " has ",
                       replicas, ", which is not a multiple of ", n));
    }
    of.replicas_of_process.push_back(replicas / n);
  }
  for (size_t i = 0; i < devices_.size(); i += static_cast<size_t>(n))
    of.devices.push_back(devices_[i].ToString());
  ASSIGN_OR_RETURN(ReplicaGroup group, Create(std::move(of)));
  group.collective_ = collective_;
  return group;
}

std::string ReplicaGroup::ToString() const {
  std::vector<std::string> here;
  for (size_t i = 0; i < devices_.size(); ++i) {
    here.push_back(
        absl::StrCat(first_replica_ + static_cast<int>(i), " on ", devices_[i].ToString()));
  }
  return absl::StrCat(replicas_, " replica(s) in ", num_processes(), " process(es); here ",
                      absl::StrJoin(here, ", "));
}

absl::Status ReplicaGroup::OnEachReplica(const std::function<absl::Status(int)>& fn) const {
  if (in_replica_function) {
    return absl::FailedPreconditionError(
        "Run was called inside a function passed to Run; call it outside, on the results");
  }
  return replica::ParallelFor(num_local_replicas(), [&fn](int replica) {
    in_replica_function = true;
    absl::Status status = fn(replica);
    in_replica_function = false;
    return status;
  });
}

bool InReplicaFunction() {
  return in_replica_function;
}

absl::StatusOr<std::vector<std::string>> ReplicaGroup::Exchange(std::string_view what,
                                                                std::string_view bytes) const {
  if (num_processes() == 1) return std::vector<std::string>{std::string(bytes)};
  if (collective_ != nullptr) return collective_->AllGather(bytes);
  return absl::FailedPreconditionError(absl::StrCat(
      std::string(what), " over ", num_processes(),
      " processes needs a group connected by Connect() or FromNccl(); or reduce LocalResults with "
      "the trainer's own communicator"));
}

template <class T>
absl::StatusOr<std::vector<T>> ReplicaGroup::ReduceWide(ReduceOp op,
                                                        const std::vector<std::vector<T>>& values,
                                                        char type) const {
  RETURN_IF_ERROR(CheckLocal(values.size()));
  const size_t length = values[0].size();
  std::string own(1, type);
  for (const std::vector<T>& of_replica : values) {
    if (of_replica.size() != length) return DifferentLengths();
    own.append(reinterpret_cast<const char*>(of_replica.data()), length * sizeof(T));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> all, Exchange("Reduce", own));
  std::vector<T> sums(length);
  for (size_t process = 0; process < all.size(); ++process) {
    const auto replicas = static_cast<size_t>(options_.replicas_of_process[process]);
    const std::string_view bytes = all[process];
    if (bytes.size() != 1 + replicas * length * sizeof(T) || bytes[0] != type)
      return DifferentLengths();
    std::vector<T> others(replicas * length);
    std::memcpy(others.data(), bytes.data() + 1, bytes.size() - 1);
    for (size_t i = 0; i < others.size(); ++i) sums[i % length] += others[i];
  }
  for (size_t i = 0; op == ReduceOp::kMean && i < length; ++i) sums[i] /= static_cast<T>(replicas_);
  return sums;
}

template absl::StatusOr<std::vector<double>> ReplicaGroup::ReduceWide(
    ReduceOp op, const std::vector<std::vector<double>>& values, char type) const;
template absl::StatusOr<std::vector<int64_t>> ReplicaGroup::ReduceWide(
    ReduceOp op, const std::vector<std::vector<int64_t>>& values, char type) const;
template absl::StatusOr<std::vector<uint64_t>> ReplicaGroup::ReduceWide(
    ReduceOp op, const std::vector<std::vector<uint64_t>>& values, char type) const;

absl::Status ReplicaGroup::CheckLocal(size_t values) const {
  if (values == devices_.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "got values of ", values, " replica(s), but this process has ", devices_.size()));
}

}  // namespace penstock
