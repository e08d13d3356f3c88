// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

absl::StatusOr<std::vector<TensorSpec>> InferConstant(const Attrs& attrs, InputSpecs) {
  const DType dtype = Get<DType>(attrs, "dtype");
  const auto& dims = Get<std::vector<int64_t>>(attrs, "dims");
  if (!IsKnown(dtype)) return absl::InvalidArgumentError("unknown dtype");
  ASSIGN_OR_RETURN(const int64_t count, CountOf(dims, dtype == kString ? kUInt64 : dtype));
  const size_t bytes = Get<std::string>(attrs, "data").size();
  const size_t strings = Get<std::vector<std::string>>(attrs, "strings").size();
  const bool complete = dtype == kString ? strings == static_cast<size_t>(count) && bytes == 0
                                         : bytes == count * SizeOf(dtype) && strings == 0;
  if (!complete) return absl::InvalidArgumentError("the number of values does not match the dims");
  return std::vector<TensorSpec>{Dense(dtype, Shape(dims))};
}

// The values, aligned for any dtype.
struct Held {
  std::vector<int64_t> dims;
  std::vector<uint64_t> words;  // values, or strings' offsets
  std::string bytes;            // for strings
};

absl::StatusOr<Kernel> MakeConstant(const OpDef& def, InputSpecs) {
  auto held = std::make_shared<Held>();
  held->dims = Get<std::vector<int64_t>>(def.attrs, "dims");
  const DType dtype = Get<DType>(def.attrs, "dtype");
  const std::string& data = Get<std::string>(def.attrs, "data");
  held->words.resize(data.size() / sizeof(uint64_t) + 1);
  if (!data.empty()) std::memcpy(held->words.data(), data.data(), data.size());
  if (dtype == kString) {
    held->words = {0};
    for (const std::string& value : Get<std::vector<std::string>>(def.attrs, "strings")) {
      held->bytes += value;
      held->words.push_back(held->bytes.size());
    }
  }
  return Kernel([held, dtype](OpRun& run) {
    return run.View(0, Tensor(dtype, held->dims, held->words.data(), held->bytes.data()));
  });
}

}  // namespace

std::vector<OpRow> ConstantOps() {
  return {{.name = "Constant",
           .min_inputs = 0,
           .max_inputs = 0,
           .attrs = {{"dtype", kAttrIndex<DType>},
                     {"dims", kAttrIndex<std::vector<int64_t>>},
                     {"data", kAttrIndex<std::string>},
                     {"strings", kAttrIndex<std::vector<std::string>>}},
           .infer = InferConstant,
           .make = MakeConstant}};
}

}  // namespace penstock
