// SPDX-License-Identifier: Apache-2.0
#include "control/observe/wait_lines.h"

#include <algorithm>
#include <utility>

namespace penstock {

void WaitLines::Waits(absl::Duration waited, absl::FunctionRef<std::string()> whom) {
  if (waited < said_) said_ = absl::ZeroDuration();  // a new wait
  const absl::Duration since = waited - said_;
  if (since < kFirst) return;
  std::string now = whom();
  if (now != whom_) pause_ = kFirst;
  if (since < pause_) return;
  whom_ = std::move(now);
  if (whom_.empty()) return;
  said_ = waited;
  pause_ = std::min(2 * pause_, kLongest);
  Event event{"waits", of_};
  event.fields.emplace_back("for", whom_);
  event.fields.emplace_back("since", absl::FormatDuration(absl::Trunc(waited, absl::Seconds(1))));
  events_->Write(std::move(event));
}

}  // namespace penstock
