// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "penstock/element.h"
#include "penstock/ids.h"

namespace penstock::client {

// An element, or an error in its place, that has been received but not returned yet.
struct ReceivedElement {
  Identity identity;
  Index position = 0;  // as a Receiver counts it: an index or a row (Delivery::OnElement)
  Element element;     // empty for an error
  absl::Status error;  // OK for an element
  WorkerId from;
  size_t bytes = 0;
};

}  // namespace penstock::client
