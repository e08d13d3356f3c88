// SPDX-License-Identifier: Apache-2.0
// What registered code gives for the leaves of one element, held to the spec that
// it promised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "dataplane/dataset/function.h"
#include "penstock/register.h"
#include "penstock/spec.h"

namespace penstock {

// Of one element; one thread.
class OutputChecks {
 public:
  explicit OutputChecks(absl::Span<const TensorSpec> leaves)
      : leaves_(leaves), given_(leaves.size(), false) {}

  // Notes that leaf `i` is given with these dims. InvalidArgument if there is none,
  // twice, for strings and others mixed up, and for dims that the spec excludes.
  absl::Status Give(size_t i, absl::Span<const int64_t> dims, bool strings);
  // Of strings: as many as the dims have places, too.
  absl::Status GiveStrings(size_t i, absl::Span<const int64_t> dims, size_t count);
  // Internal if a leaf was not given; `who` gives them, in the message.
  absl::Status AllGiven(std::string_view who) const;

 private:
  absl::Span<const TensorSpec> leaves_;
  absl::InlinedVector<bool, 8> given_;
};

// Dense leaves only, of known dtypes: what registered code can give.
absl::Status CheckRegisteredSpec(absl::Span<const TensorSpec> leaves);

// Hands what registered code gives on to a sink.
class SinkOutputs final : public ElementOutputs {
 public:
  SinkOutputs(ResultSink& sink, absl::Span<const TensorSpec> leaves)
      : sink_(sink), leaves_(leaves), checks_(leaves) {}
  absl::StatusOr<absl::Span<std::byte>> Output(size_t i, absl::Span<const int64_t> dims) override;
  absl::Status OutputStrings(size_t i, absl::Span<const int64_t> dims,
                             absl::Span<const std::string> values) override;
  const OutputChecks& checks() const { return checks_; }

 private:
  ResultSink& sink_;
  absl::Span<const TensorSpec> leaves_;
  OutputChecks checks_;
};

}  // namespace penstock
