// SPDX-License-Identifier: Apache-2.0
// Reads whole files inside a function.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/env/files.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "include/status_macros.h"
#include "penstock/map.h"

namespace penstock {
namespace {

absl::StatusOr<std::vector<TensorSpec>> InferReadFile(const Attrs&, InputSpecs inputs) {
  if (inputs[0].dtype != kString || !(inputs[0].shape == Shape())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name is ", inputs[0].ToString(), ", not a scalar string"));
  }
  return std::vector<TensorSpec>{Bytes()};
}

absl::Status RunReadFile(OpRun& run, Files& files) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                   files.Open(std::string(run.input(0).string())));
  const auto size = static_cast<uint64_t>(file->size());
  if (size > MostValueBytes()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        file->name(), " has ", size, " bytes; the limit for a value is ", MostValueBytes(),
        " in this process (a worker's --memory-budget-bytes; otherwise half of the "
        "memory, but at most 4 GiB)"));
  }
  char* const bytes = reinterpret_cast<char*>(run.Scratch(size + 1));
  ASSIGN_OR_RETURN(const size_t read, file->ReadAt(0, absl::MakeSpan(bytes, size)));
  auto* const offsets = run.arena().AllocateArray<uint64_t>(2);
  offsets[0] = 0;
  offsets[1] = read;
  return run.View(0, Tensor(kString, {}, offsets, bytes));
}

absl::StatusOr<Kernel> MakeReadFile(const OpDef&, const OpMeans& means) {
  if (means.files == nullptr)
    return Kernel([](OpRun& run) { return RunReadFile(run, DefaultFiles()); });
  return Kernel([files = means.files](OpRun& run) { return RunReadFile(run, *files); });
}

}  // namespace

std::vector<OpRow> FileOps() {
  return {{.name = kReadFile, .infer = InferReadFile, .make_with = MakeReadFile}};
}

Expr ReadFile(const Expr& name) {
  return Apply1(kReadFile, {}, {name});
}

}  // namespace penstock
