// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/expr/op_run.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dataplane/memory/element_limit.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

absl::Status TooLarge(std::string_view value) {
  if (MostValueBytes() < kMaxValueBytes) return AboveElementLimit(value);
  return absl::ResourceExhaustedError(
      absl::StrCat(std::string(value), " takes more than ", kMaxValueBytes >> 30, " GiB"));
}

}  // namespace

uint64_t MostValueBytes() {
  return std::min(kMaxValueBytes, static_cast<uint64_t>(MostElementBytes()));
}

absl::Status StringsTooLarge(uint64_t bytes) {
  return TooLarge(absl::StrCat("a string value of ", bytes, " bytes"));
}

const char* BytesOf(const Tensor& x) {
  if (x.dtype() != kString) return nullptr;
  if (x.element_count() == 0) return "";
  return x.string(0).data() - *static_cast<const uint64_t*>(x.raw());
}

absl::StatusOr<int64_t> CountOf(absl::Span<const int64_t> dims, DType dtype) {
  // Zeros are left out of the product at first. This ensures that no product of some of the dims,
  // such as a stride, can overflow.
  uint64_t count = 1;
  bool empty = false;
  const uint64_t most = MostValueBytes() / std::max<size_t>(SizeOf(dtype), 1);
  for (int64_t dim : dims) {
    if (dim < 0) return absl::InvalidArgumentError(absl::StrCat("a dimension is negative: ", dim));
    if (dim == 0) {
      empty = true;
    } else if (count > most / static_cast<uint64_t>(dim)) {
      return TooLarge(absl::StrCat("a value of [", absl::StrJoin(dims, ","), "] ", Name(dtype)));
    } else {
      count *= static_cast<uint64_t>(dim);
    }
  }
  if (empty) return 0;
  return static_cast<int64_t>(count);
}

absl::Span<const int64_t> OpRun::Keep(absl::Span<const int64_t> dims) {
  if (dims.empty()) return {};
  auto* kept = arena_.AllocateArray<int64_t>(dims.size());
  std::copy(dims.begin(), dims.end(), kept);
  return {kept, dims.size()};
}

absl::StatusOr<absl::Span<std::byte>> OpRun::Place(size_t i, absl::Span<const int64_t> dims) {
  const OutputPlace& output = outputs_[i];
  ASSIGN_OR_RETURN(const int64_t count, CountOf(dims, output.dtype));
  const size_t bytes = count * SizeOf(output.dtype);
  absl::Span<std::byte> memory;
  if (!output.results.empty()) {
    ASSIGN_OR_RETURN(memory, sink_.Place(output.results[0], output.dtype, dims));
    if (memory.size() < bytes) return absl::InternalError("the sink's memory is too small");
    memory = memory.first(bytes);
  } else {
    memory = {arena_.Allocate(bytes), bytes};
  }
  values_[output.value] = Tensor(output.dtype, Keep(dims), memory.data());
  return memory;
}

absl::Status OpRun::View(size_t i, const Tensor& value) {
  const OutputPlace& output = outputs_[i];
  Tensor& kept = values_[output.value];
  kept = Tensor(output.dtype, Keep(value.dims()), value.raw(), BytesOf(value));
  if (!output.results.empty()) return sink_.Copy(output.results[0], kept);
  return absl::OkStatus();
}

absl::Status OpRun::ViewRagged(size_t i, const Tensor& flat,
                               absl::Span<const absl::Span<const int64_t>> splits) {
  const OutputPlace& output = outputs_[i];
  std::array<absl::Span<const int64_t>, Tensor::kMaxRaggedRank> kept_splits;
  for (size_t level = 0; level < splits.size(); ++level) kept_splits[level] = Keep(splits[level]);
  Tensor& kept = values_[output.value];
  kept = Tensor(output.dtype, Keep(flat.dims()), flat.raw(), BytesOf(flat));
  kept.SetRagged(absl::MakeConstSpan(kept_splits).first(splits.size()));
  if (!output.results.empty()) return sink_.Copy(output.results[0], kept);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> OpRun::KeepStrings(absl::Span<const int64_t> dims,
                                          absl::FunctionRef<std::string_view(int64_t)> at) {
  ASSIGN_OR_RETURN(const int64_t count, CountOf(dims, kUInt64));
  auto* offsets = arena_.AllocateArray<uint64_t>(count + 1);
  offsets[0] = 0;
  for (int64_t n = 0; n < count; ++n) offsets[n + 1] = offsets[n] + at(n).size();
  if (offsets[count] > MostValueBytes()) return StringsTooLarge(offsets[count]);
  char* bytes = reinterpret_cast<char*>(arena_.Allocate(offsets[count] + 1));
  for (int64_t n = 0; n < count; ++n) {
    const std::string_view value = at(n);
    if (!value.empty()) std::memcpy(bytes + offsets[n], value.data(), value.size());
  }
  return Tensor(kString, Keep(dims), offsets, bytes);
}

absl::Status OpRun::Strings(size_t i, absl::Span<const int64_t> dims,
                            absl::FunctionRef<std::string_view(int64_t)> at) {
  ASSIGN_OR_RETURN(const Tensor value, KeepStrings(dims, at));
  return View(i, value);
}

}  // namespace penstock
