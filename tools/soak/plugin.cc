// SPDX-License-Identifier: Apache-2.0
// A plug-in whose map aborts the process at one number, like an image that crashes a decoder.
#include <cstdint>
#include <cstdlib>

#include "penstock/penstock.h"
#include "penstock/status.h"

namespace ps = penstock;

namespace {

absl::StatusOr<ps::Spec> SpecOfNumber(const ps::Spec& input) {
  PENSTOCK_RETURN_IF_ERROR(
      ps::Spec::Tuple({ps::Scalar(ps::kInt64), ps::Scalar(ps::kInt64)}).Admits(input));
  return ps::Spec(ps::Scalar(ps::kInt64));
}

// Maps (number, at) to number; aborts the process if the two are equal.
absl::Status EndProcessAt(ps::CallContext& call) {
  const int64_t number = call.inputs()[0].scalar<int64_t>();
  if (number == call.inputs()[1].scalar<int64_t>()) std::abort();
  PENSTOCK_ASSIGN_OR_RETURN(const absl::Span<int64_t> same, call.OutputAs<int64_t>(0, {}));
  same[0] = number;
  return absl::OkStatus();
}

absl::Status Register() {
  return ps::RegisterMap("end_process_at", {.output_spec = SpecOfNumber, .call = EndProcessAt});
}

}  // namespace

PENSTOCK_EXPORT_PLUGIN(Register);
