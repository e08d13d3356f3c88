// SPDX-License-Identifier: Apache-2.0
// Named places where a test may kill this process, as kill -9 would:
//
//   PENSTOCK_FAIL_POINT="append_before_answer:3" penstock dispatcher …
//
// This kills the dispatcher when it reaches that place for the third time. Several places are
// separated by commas. The places are:
//   append_before_answer  dispatcher: a change is applied and given to the journal; its answer
//                         is not sent yet
//   durable_before_answer dispatcher: the change is durable; its answer is not sent yet
//   in_recovery           dispatcher: the journal is read; nothing is served yet
//   seal_before_announce  worker: an element is made, and not sent yet
//   land_before_ack       client: an element was received, and not confirmed yet
//   save_before_commit    client: a state is made, and not committed yet
#pragma once

#include <string_view>

namespace penstock {

// Kills the process here if the environment asks for it. If no fail point is set, the call costs
// one load.
void FailPoint(std::string_view name);

}  // namespace penstock
