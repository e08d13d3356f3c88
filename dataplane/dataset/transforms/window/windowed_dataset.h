// SPDX-License-Identifier: Apache-2.0
// The contents of a WindowedDataset: a node without the attributes that say how its windows are
// combined (window_form.h).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "dataplane/dataset/expr/attr.h"
#include "dataplane/dataset/graph/graph.h"
#include "penstock/dataset.h"

namespace penstock {

struct WindowedDataset::Windows {
  std::string op;
  Attrs attrs;
  NodePtr input;
  absl::Status mistake;  // the reason why `attrs` is not valid
};

}  // namespace penstock
