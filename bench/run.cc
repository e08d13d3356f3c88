// SPDX-License-Identifier: Apache-2.0
#include "bench/run.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "bench/machine.h"
#include "bench/service.h"
#include "dataplane/transfer/transport.h"
#include "penstock/status.h"

namespace penstock::bench {
namespace {

constexpr int64_t kSmallest = 16;               // bytes: two stamps
constexpr int64_t kLargest = int64_t{4} << 30;  // bytes: max_element_bytes

// A folder of its own, removed with all that is in it.
class Scratch {
 public:
  static absl::StatusOr<Scratch> Make() {
    std::error_code error;
    std::string name = (std::filesystem::temp_directory_path(error) / "penstock-bench-XXXXXX");
    if (error || ::mkdtemp(name.data()) == nullptr) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot make the folder ", name));
    }
    return Scratch(std::move(name));
  }
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

absl::Status RunPairs(const Options& options, const Workload& workload, Row& row) {
  PENSTOCK_ASSIGN_OR_RETURN(const Scratch scratch, Scratch::Make());
  row.setup.scratch = scratch.path();
  PENSTOCK_RETURN_IF_ERROR(workload.Prepare(row.setup));
  PENSTOCK_ASSIGN_OR_RETURN(const std::unique_ptr<Side> limit, workload.MakeLimit(row.setup));
  row.limit = limit->name();
  PENSTOCK_ASSIGN_OR_RETURN(const std::unique_ptr<Side> ours, StartService(row.setup));
  for (int i = 0; i < options.pairs; ++i) {
    Pair pair;
    PENSTOCK_ASSIGN_OR_RETURN(pair.side, Measure(*ours, options.window_s));
    PENSTOCK_ASSIGN_OR_RETURN(pair.limit, Measure(*limit, options.window_s));
    row.pairs.push_back(std::move(pair));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Setup>> PlanCases(const Options& options) {
  for (int64_t size : options.sizes) {
    if (size < kSmallest || size > kLargest) {
      return absl::InvalidArgumentError(
          absl::StrCat("--size must be from ", kSmallest, " to ", kLargest, " bytes, not ", size));
    }
  }
  std::vector<const Workload*> workloads;
  for (const std::string& name : options.workloads) {
    PENSTOCK_ASSIGN_OR_RETURN(workloads.emplace_back(), FindWorkload(name));
  }
  if (workloads.empty()) workloads = Workloads();
  for (const std::string& name : options.protocols) {
    PENSTOCK_RETURN_IF_ERROR(transfer::FindTransport(name).status());
  }
  const std::vector<std::string> protocols =
      options.protocols.empty() ? transfer::TransportNames() : options.protocols;

  std::vector<Setup> cases;
  for (const Workload* workload : workloads) {
    const bool resized = workload->sized() && !options.sizes.empty();
    for (const std::string& protocol : protocols) {
      for (int64_t bytes : resized ? options.sizes : workload->sizes()) {
        for (const Shape& shape : workload->shapes()) {
          // In one process there is one trainer, beside its worker.
          if (protocol == "local" && (shape.workers > 1 || shape.consumers > 1)) continue;
          cases.push_back({.workload = std::string(workload->name()),
                           .protocol = protocol,
                           .element_bytes = bytes,
                           .workers = shape.workers,
                           .consumers = shape.consumers,
                           .window_s = options.window_s,
                           .source_bytes = options.source_bytes});
        }
      }
    }
  }
  return cases;
}

Row RunCase(const Options& options, const Setup& setup) {
  Row row{.setup = setup, .version = Version()};
  const absl::StatusOr<const Workload*> workload = FindWorkload(setup.workload);
  row.status = workload.status();
  if (!workload.ok()) return row;
  row.basis = (*workload)->basis();
  row.status = RunPairs(options, **workload, row);
  return row;
}

}  // namespace penstock::bench
