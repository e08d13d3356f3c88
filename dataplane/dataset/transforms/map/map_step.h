// SPDX-License-Identifier: Apache-2.0
// The work of a Map on one element, independent of where its result goes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/transforms/map/parallelism.h"
#include "penstock/tensor.h"

namespace penstock {

// Thread-safe.
class MapStep {
 public:
  // `site` is the site of a Map.
  static absl::StatusOr<std::unique_ptr<MapStep>> Create(const BuildSite& site);

  // Applies the function to the leaves of element `number`. The error names the node.
  absl::Status Run(absl::Span<const Tensor> input, int64_t number, ResultSink& sink);

  const Parallelism& parallelism() const { return parallelism_; }

 private:
  // `most` is the limit on the number of calls at a time, if calls wait (parallelism.h).
  MapStep(const BuildSite& site, std::optional<int> most)
      : name_(site.name()),
        random_(site.Random()),
        profile_(site.profile()),
        parallelism_(site.attr<int64_t>("num_parallel_calls"), site.threads(), most, profile_) {}
  absl::Status Call(absl::Span<const Tensor> input, const RandomKey& random,
                    ResultSink& sink) const;

  const std::string name_;
  const RandomKey random_;
  std::shared_ptr<const BoundFunction> function_;
  NodeProfile* const profile_;
  Parallelism parallelism_;
};

}  // namespace penstock
