// SPDX-License-Identifier: Apache-2.0
// Reads one element at a time from one of several inputs. A Choice selects the input
// (ChooseFromDatasets, SampleFromDatasets). Nothing is read ahead.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "penstock/spec.h"

namespace penstock {

// Selects the next input. One thread.
class Choice {
 public:
  virtual ~Choice() = default;
  // Returns the index of an input, which may have ended (`goes_on` is false); nullopt when there
  // are no more choices. An error takes the place of an element.
  virtual absl::StatusOr<std::optional<size_t>> Next(const std::vector<bool>& goes_on) = 0;
  virtual absl::Status Save(StateWriter& writer) = 0;
  virtual absl::Status Restore(StateReader& reader) = 0;
};

// Makes an iterator over the first `count` inputs of the site's node.
absl::StatusOr<std::unique_ptr<NodeIterator>> ReadChosen(const BuildSite& site, size_t count,
                                                         std::unique_ptr<Choice> choice,
                                                         bool stop_on_empty_dataset);

// Returns the spec that admits the elements of all inputs. InvalidArgument names the first input
// that differs.
absl::StatusOr<Spec> SpecOfAny(absl::Span<const NodePtr> inputs);

}  // namespace penstock
