// SPDX-License-Identifier: Apache-2.0
// One element after the other of several inputs, as a choice says
// (ChooseFromDatasets, SampleFromDatasets). Nothing is read ahead.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/build_site.h"
#include "dataplane/dataset/node_iterator.h"
#include "penstock/spec.h"

namespace penstock {

// Which input is next. One thread.
class Choice {
 public:
  virtual ~Choice() = default;
  // The number of an input, which may be one that has ended (`goes_on` false);
  // nullopt when there is no choice any more. An error stands at its place.
  virtual absl::StatusOr<std::optional<size_t>> Next(const std::vector<bool>& goes_on) = 0;
  virtual absl::Status Save(StateWriter& writer) = 0;
  virtual absl::Status Restore(StateReader& reader) = 0;
};

// Reads the first `count` inputs of the site's node.
absl::StatusOr<std::unique_ptr<NodeIterator>> ReadChosen(const BuildSite& site, size_t count,
                                                         std::unique_ptr<Choice> choice,
                                                         bool stop_on_empty_dataset);

// The spec of what is an element of any of them. InvalidArgument names the
// first that differs.
absl::StatusOr<Spec> SpecOfAny(absl::Span<const NodePtr> inputs);

}  // namespace penstock
