// SPDX-License-Identifier: Apache-2.0
// Named places where a test may kill this process, as kill -9 would:
//
//   PENSTOCK_FAIL_POINT="append_before_answer:3" penstock dispatcher …
//
// dies when it comes to that place for the third time. Several, with commas.
// Places there are:
//   append_before_answer  dispatcher: a change is applied and handed to the journal,
//                         its answer not yet sent
//   durable_before_answer dispatcher: … and durable
//   in_recovery           dispatcher: the journal is read, nothing served yet
//   seal_before_announce  worker: an element is made, not yet sent
//   land_before_ack       client: an element was received, not yet confirmed
//   save_before_commit    client: a state is made, not yet committed
#pragma once

#include <string_view>

namespace penstock {

// Dies here if the environment says so. Otherwise one relaxed load.
void FailPoint(std::string_view name);

}  // namespace penstock
