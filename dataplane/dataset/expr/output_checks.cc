// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/expr/output_checks.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dataplane/dataset/expr/op_run.h"
#include "include/status_macros.h"

namespace penstock {

absl::Status OutputChecks::Give(size_t i, absl::Span<const int64_t> dims, bool strings) {
  if (i >= leaves_.size())
    return absl::InvalidArgumentError(
        absl::StrCat("output ", i, " does not exist; the number of outputs is ", leaves_.size()));
  if ((leaves_[i].dtype == kString) != strings) {
    return absl::InvalidArgumentError(
        strings ? absl::StrCat("output ", i, " is not a string tensor; use Output")
                : absl::StrCat("output ", i, " is a string tensor; use OutputStrings"));
  }
  if (given_[i]) return absl::InvalidArgumentError(absl::StrCat("output ", i, " is given twice"));
  if (!leaves_[i].shape.Admits(dims)) {
    return absl::InvalidArgumentError(absl::StrCat("output ", i, " has dims [",
                                                   absl::StrJoin(dims, ","), "]; its spec is ",
                                                   leaves_[i].ToString()));
  }
  given_[i] = true;
  return absl::OkStatus();
}

absl::Status OutputChecks::GiveStrings(size_t i, absl::Span<const int64_t> dims, size_t count) {
  RETURN_IF_ERROR(Give(i, dims, /*strings=*/true));
  ASSIGN_OR_RETURN(const int64_t places, CountOf(dims, kUInt64));
  if (static_cast<size_t>(places) == count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("output ", i, " has ", count, " strings, but its dims have room for ", places));
}

absl::Status OutputChecks::AllGiven(std::string_view who) const {
  const auto missing = std::find(given_.begin(), given_.end(), false);
  if (missing == given_.end()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(std::string(who), " did not write output ", missing - given_.begin()));
}

absl::Status CheckRegisteredSpec(absl::Span<const TensorSpec> leaves) {
  for (const TensorSpec& leaf : leaves)
    if (leaf.kind != TensorSpec::Kind::kDense || leaf.optional || !IsKnown(leaf.dtype))
      return absl::InvalidArgumentError(
          absl::StrCat("registered code can return only dense tensors, not ", leaf.ToString()));
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<std::byte>> SinkOutputs::Output(size_t i,
                                                          absl::Span<const int64_t> dims) {
  RETURN_IF_ERROR(checks_.Give(i, dims, /*strings=*/false));
  ASSIGN_OR_RETURN(const int64_t count, CountOf(dims, leaves_[i].dtype));
  const size_t bytes = count * SizeOf(leaves_[i].dtype);
  ASSIGN_OR_RETURN(const absl::Span<std::byte> memory, sink_.Place(i, leaves_[i].dtype, dims));
  if (memory.size() < bytes) return absl::InternalError("the sink's memory is too small");
  return memory.first(bytes);
}

absl::Status SinkOutputs::OutputStrings(size_t i, absl::Span<const int64_t> dims,
                                        absl::Span<const std::string> values) {
  RETURN_IF_ERROR(checks_.GiveStrings(i, dims, values.size()));
  std::vector<uint64_t> offsets = {0};
  std::string bytes;
  for (const std::string& value : values) {
    bytes += value;
    offsets.push_back(bytes.size());
  }
  return sink_.Copy(i, Tensor(kString, dims, offsets.data(), bytes.data()));
}

}  // namespace penstock
