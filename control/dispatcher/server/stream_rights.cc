// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/stream_rights.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "control/observe/refused.h"
#include "include/status_macros.h"

namespace penstock::control {

void StreamRights::Add(PortUser& stream, Opener opener) {
  if (!opener.caller.has_value()) return;  // there is no auth_file
  MutexLock lock(mu_);
  streams_.emplace(&stream, std::move(opener));
}

void StreamRights::Remove(PortUser& stream) {
  MutexLock lock(mu_);
  streams_.erase(&stream);
}

void StreamRights::Sweep() {
  const uint64_t revision = authenticator_->Revision();
  MutexLock lock(mu_);
  for (auto& [stream, opener] : streams_) {
    if (std::exchange(opener.revision, revision) == revision) continue;
    if (const absl::Status rights = Check(opener); !rights.ok()) stream->Refuse(rights);
  }
}

absl::Status StreamRights::Check(const Opener& opener) {
  const absl::StatusOr<Caller> now = authenticator_->Identify(opener.credentials);
  if (!now.ok()) {
    CountRefused(Port::kDispatcher, Refused::kUnauthenticated);
    return now.status();
  }
  if (*now == opener.caller) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "the dispatcher's auth_file has changed the rights of '", opener.caller->name,
      "' while its stream was open; open another stream to use the rights that it has now"));
}

}  // namespace penstock::control
