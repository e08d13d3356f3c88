// SPDX-License-Identifier: Apache-2.0
// A stream writer for tests that do not look at what the dispatcher sends.
#pragma once

#include "control/dispatcher/messages/stream_writer.h"

namespace penstock::control {

template <class Down>
class Deaf final : public StreamWriter<Down> {
 public:
  void Send(Down /*message*/, uint64_t /*sequence*/) override {}
  void Finish(const absl::Status& /*status*/) override {}
};

}  // namespace penstock::control
