// SPDX-License-Identifier: Apache-2.0
#include "control/stub/retry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/observe/wait_lines.h"
#include "control/sync/clock.h"
#include "control/sync/random.h"
#include "control/sync/thread.h"

namespace penstock::control {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
constexpr absl::Duration kMaxPause = absl::Seconds(1);

bool IsWorthTryingAgain(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status) || absl::IsCancelled(status) ||
         absl::IsDeadlineExceeded(status);
}

}  // namespace

absl::Status Retry(Addresses& addresses, const CallOptions& options, std::stop_token of_stub,
                   absl::FunctionRef<absl::Status(const std::string& address, absl::Duration left,
                                                  const std::stop_token& stop)>
                       once) {
  std::stop_source stop;  // requested by the caller or by the stub's Stop()
  std::stop_callback by_caller(options.stop, [&stop] { stop.request_stop(); });
  std::stop_callback by_stub(std::move(of_stub), [&stop] { stop.request_stop(); });
  const absl::Time begun = BootTime();
  const absl::Time deadline = begun + options.timeout;
  absl::Duration pause = kFirstPause;
  WaitLines lines(StderrEventLog());
  AddressRound round(addresses);
  std::string why = "there was no time to try";
  while (!stop.stop_requested() && BootTime() < deadline) {
    const absl::Duration left = deadline - BootTime();
    const absl::Status status = once(round.address(), left, stop.get_token());
    if (!IsWorthTryingAgain(status)) {
      round.Answered();
      return status;
    }
    const bool in_a_hurry = absl::IsDeadlineExceeded(status) && left < kMaxPause;
    const bool pauses = round.Failed(status, in_a_hurry);
    why = round.Reasons();
    lines.Waits(BootTime() - begun,
                [&] { return absl::StrCat("the dispatcher at ", addresses.text(), ": ", why); });
    if (!pauses) continue;
    Sleep(RandomBetween(0.5, 1.0) * std::min(pause, deadline - BootTime()), stop.get_token());
    pause = std::min(2 * pause, kMaxPause);
  }
  if (stop.stop_requested()) {
    return absl::CancelledError(
        absl::StrCat("the call to the dispatcher at ", addresses.text(), " was cancelled"));
  }
  return absl::UnavailableError(absl::StrCat("no dispatcher answers at ", addresses.text(),
                                             " within ", absl::FormatDuration(options.timeout),
                                             ": ", why));
}

}  // namespace penstock::control
