// SPDX-License-Identifier: Apache-2.0
// Checks the results that registered code returns for one element against the promised spec.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "dataplane/dataset/expr/function.h"
#include "penstock/register.h"
#include "penstock/spec.h"

namespace penstock {

// For one element. Used on one thread.
class OutputChecks {
 public:
  explicit OutputChecks(absl::Span<const TensorSpec> leaves)
      : leaves_(leaves), given_(leaves.size(), false) {}

  // Notes that leaf `i` is given with these dims. InvalidArgument if there is no such leaf, if it
  // was given before, if strings are given for a leaf of another dtype or other values for a leaf
  // of strings, or if the spec excludes the dims.
  absl::Status Give(size_t i, absl::Span<const int64_t> dims, bool strings);
  // The same as Give(), for strings; `count` must also be the product of the dims.
  absl::Status GiveStrings(size_t i, absl::Span<const int64_t> dims, size_t count);
  // Internal if a leaf was not given; the message names `who`.
  absl::Status AllGiven(std::string_view who) const;

 private:
  absl::Span<const TensorSpec> leaves_;
  absl::InlinedVector<bool, 8> given_;
};

// InvalidArgument unless all leaves are dense and of known dtypes: registered code cannot return
// other leaves.
absl::Status CheckRegisteredSpec(absl::Span<const TensorSpec> leaves);

// Passes the results of registered code on to a sink.
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
