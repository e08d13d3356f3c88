// SPDX-License-Identifier: Apache-2.0
// What a WindowedDataset holds: a node that still lacks the attributes that say
// what its windows become (window_form.h).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "dataplane/dataset/attr.h"
#include "dataplane/dataset/graph.h"
#include "penstock/dataset.h"

namespace penstock {

struct WindowedDataset::Windows {
  std::string op;
  Attrs attrs;
  NodePtr input;
  absl::Status mistake;  // why `attrs` could not be made
};

}  // namespace penstock
