// SPDX-License-Identifier: Apache-2.0
// Elements and frames as they come from a network: checked, then handed on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer {

// Of one link. Not thread-safe. Keeps its memory, so that landing allocates
// nothing in a steady state.
class Landing {
 public:
  Landing(Spec spec, int64_t max_element_bytes)
      : spec_(std::move(spec)), max_element_bytes_(max_element_bytes) {}

  // The block in the first `bytes` of the loan, or the frame. `landed` is how many
  // OnElements was given. DataLoss, behind what was good of a frame: no element of
  // the spec, above max_element_bytes, or not as long as the message.
  absl::Status Element(Loan loan, size_t bytes, ReceiveEvents& events, int64_t& landed);
  // The block whose head is all of the loan and whose body, of so many bytes, is on a device:
  // the loan is of a DevicePlace (dataplane/memory/device_landing.h).
  absl::Status OnDevice(Loan loan, size_t body_bytes, ReceiveEvents& events, int64_t& landed);
  absl::Status Frame(Loan loan, size_t bytes, ReceiveEvents& events, int64_t& landed);
  // Either of them, compressed (codec.h); made whole in a slot of `pool`.
  absl::Status Compressed(const Loan& loan, size_t bytes, Pool& pool, ReceiveEvents& events,
                          int64_t& landed);

 private:
  absl::Status Check(size_t block_bytes) const;

  const Spec spec_;
  const int64_t max_element_bytes_;
  std::vector<penstock::Element> landing_;  // those of a frame; empty between two events
};

}  // namespace penstock::transfer
