// SPDX-License-Identifier: Apache-2.0
// The session's log lines about what it waits for, after Next() has waited long.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dataplane/client/session.h"

namespace penstock::client {

void Session::SayWaits() {
  if (!times_.waiting() || leaving_ || !error_.ok()) return;
  wait_lines_.Waits(absl::FromChrono(times_.Waiting()),
                    [this]() REQUIRES(mu_) { return WaitsFor(); });
}

std::string Session::WaitsFor() const {
  if (!welcomed_) {
    return absl::StrCat("the dispatcher at ", stub_.address(), ", which does not answer");
  }
  if (no_worker_since_ != absl::InfiniteFuture()) {
    return absl::StrCat("a worker: the dispatcher at ", stub_.address(),
                        " has none for this job; start one there");
  }
  std::vector<std::string> workers;
  for (const auto& [id, reader] : readers_) {
    const Reader::Progress& progress = reader->progress();
    if (!progress.wanted) continue;
    if (progress.down_since != absl::InfiniteFuture()) {
      return absl::StrCat("worker ", reader->worker().address, ", which is out of reach",
                          progress.reason.ok() ? "" : ": ", progress.reason.message());
    }
    workers.push_back(reader->worker().address);
  }
  if (std::string reason = BlockingReason(); !reason.empty()) return reason;
  if (report_at_once_ && shared()) return "what other readers of the job hold";
  return absl::StrCat("elements of worker ", absl::StrJoin(workers, ", "));
}

}  // namespace penstock::client
