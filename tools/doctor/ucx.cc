// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/pci.h"

namespace penstock::doctor {
namespace {

using Version = std::pair<int, int>;
constexpr Version kOldest = {1, 13};          // needed by the protocol
constexpr Version kForSeveralGpus = {1, 19};  // several GPUs in one process

std::string VersionText(const UcxLibrary& ucx) {
  return absl::StrCat(ucx.major, ".", ucx.minor, ".", ucx.release);
}

// UCX has modules for code that needs other libraries. They are in a folder next to its own
// libraries.
bool HasModule(const std::vector<std::string>& files, const std::string& name) {
  return std::any_of(files.begin(), files.end(), [&](const std::string& file) {
    return absl::StartsWith(file, absl::StrCat("lib", name, ".so"));
  });
}

std::string ModuleFolder(const UcxLibrary& ucx) {
  const size_t slash = ucx.path.rfind('/');
  return absl::StrCat(slash == std::string::npos ? "" : ucx.path.substr(0, slash), "/ucx");
}

Finding NotFound(const absl::Status& status, bool has_nic) {
  return {.id = "ucx.not_found",
          .severity = has_nic ? Severity::kError : Severity::kNote,
          .what = absl::StrCat("UCX cannot be opened (", std::string(status.message()), ")."),
          .why = "The ucx protocol needs UCX.",
          .remedy =
              "Install UCX 1.13 or newer (Debian: libucx0), or name its folder in "
              "LD_LIBRARY_PATH.",
          .protocols = {"ucx"},
          .blocks = true};
}

Finding TooOld(const UcxLibrary& ucx, bool has_nic) {
  return {.id = "ucx.too_old",
          .severity = has_nic ? Severity::kError : Severity::kNote,
          .what = absl::StrCat("UCX is ", VersionText(ucx), " (", ucx.path, ")."),
          .why = "The ucx protocol needs 1.13 or newer.",
          .remedy =
              "Install a newer version, of the same release line on every machine: peers of "
              "different lines fail or hang.",
          .protocols = {"ucx"},
          .blocks = true};
}

Finding UcxWithoutVerbs(const UcxLibrary& ucx, bool has_nic) {
  return {
      .id = "ucx.without_verbs",
      .severity = has_nic ? Severity::kError : Severity::kNote,
      .what = absl::StrCat("This UCX has no verbs: ", ModuleFolder(ucx), " lacks libuct_ib.so."),
      .why = "It cannot use an RDMA device. UCX from Python packages is built this way.",
      .remedy = "Install a UCX built --with-verbs (Debian's libucx0 is).",
      .protocols = {"ucx"},
      .blocks = true};
}

Finding WithoutCuda(const UcxLibrary& ucx) {
  return {
      .id = "ucx.without_cuda",
      .severity = Severity::kWarning,
      .what = absl::StrCat("The machine has a GPU and a NIC, but this UCX has no CUDA: ",
                           ModuleFolder(ucx), " lacks libuct_cuda.so."),
      .why =
          "The NIC cannot write to GPU memory through it: elements are received in host memory and "
          "copied to the GPU from there.",
      .remedy = "Install a UCX built --with-verbs --with-cuda; Debian's has no CUDA.",
      .protocols = {"ucx"}};
}

Finding OldForSeveralGpus(const UcxLibrary& ucx, size_t gpus) {
  return {
      .id = "ucx.one_gpu",
      .severity = Severity::kNote,
      .what = absl::StrCat("UCX is ", VersionText(ucx), ", and the machine has ", gpus, " GPUs."),
      .why = "Below 1.19 UCX serves one GPU per process.",
      .remedy = "Run one process per GPU, or install UCX 1.19 or newer.",
      .protocols = {"ucx"}};
}

}  // namespace

bool UcxKnowsCuda(const Probe& probe) {
  const absl::StatusOr<UcxLibrary> ucx = probe.Ucx();
  return ucx.ok() && HasModule(probe.List(ModuleFolder(*ucx)), "uct_cuda");
}

std::vector<Finding> CheckUcx(const Probe& probe) {
  const absl::StatusOr<UcxLibrary> ucx = probe.Ucx();
  // For a machine without a NIC this is not a fault, because it does not use ucx.
  const bool has_nic = !probe.List("/sys/class/infiniband").empty();
  if (!ucx.ok()) return {NotFound(ucx.status(), has_nic)};

  const Version version = {ucx->major, ucx->minor};
  const std::vector<std::string> modules = probe.List(ModuleFolder(*ucx));
  const bool verbs = HasModule(modules, "uct_ib"), cuda = HasModule(modules, "uct_cuda");
  const size_t gpus = NvidiaGpus(probe).size();
  std::vector<Finding> findings = {
      {.id = "ucx.library",
       .what = absl::StrCat("UCX ", VersionText(*ucx), " at ", ucx->path, ", ",
                            verbs ? "with" : "without", " verbs, ", cuda ? "with" : "without",
                            " CUDA."),
       .protocols = {"ucx"}}};
  if (version < kOldest) findings.push_back(TooOld(*ucx, has_nic));
  if (!verbs) findings.push_back(UcxWithoutVerbs(*ucx, has_nic));
  if (!cuda && gpus > 0 && has_nic) findings.push_back(WithoutCuda(*ucx));
  if (version < kForSeveralGpus && gpus > 1) findings.push_back(OldForSeveralGpus(*ucx, gpus));
  return findings;
}

}  // namespace penstock::doctor
