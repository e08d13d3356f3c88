// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/settings.h"

#include <cstdlib>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "include/status_macros.h"

namespace penstock::transfer::ucx {
namespace {

struct Chosen {
  Mutex mu;
  std::optional<Settings> settings GUARDED_BY(mu);
  bool settled GUARDED_BY(mu) = false;
};

Chosen& TheChosen() {
  static Chosen& chosen = *new Chosen;
  return chosen;
}

absl::StatusOr<Settings> OfTheEnvironment() {
  Settings settings;
  if (const char* lanes = std::getenv("PENSTOCK_UCX_LANES"); lanes != nullptr && *lanes != '\0') {
    absl::StatusOr<Lanes> parsed = ParseLanes(lanes);
    if (!parsed.ok()) return Annotate(parsed.status(), "the value is from PENSTOCK_UCX_LANES");
    settings.lanes = *parsed;
  }
  const char* any = std::getenv("PENSTOCK_UCX_ANY_RELEASE");
  settings.any_release = any != nullptr && std::string_view(any) == "1";
  return settings;
}

absl::StatusOr<Settings> Current(Chosen& chosen) REQUIRES(chosen.mu) {
  if (!chosen.settings.has_value()) return OfTheEnvironment();
  return *chosen.settings;
}

}  // namespace

absl::StatusOr<Lanes> ParseLanes(std::string_view name) {
  for (Lanes lanes : {Lanes::kRdma, Lanes::kAny, Lanes::kTcp}) {
    if (name == NameOf(lanes)) return lanes;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("ucx_lanes must be 'rdma', 'any' or 'tcp', not '", std::string(name), "'"));
}

std::string_view NameOf(Lanes lanes) {
  switch (lanes) {
    case Lanes::kRdma:
      return "rdma";
    case Lanes::kAny:
      return "any";
    case Lanes::kTcp:
      break;
  }
  return "tcp";
}

absl::Status Set(const Settings& settings) {
  Chosen& chosen = TheChosen();
  MutexLock lock(chosen.mu);
  ASSIGN_OR_RETURN(const Settings current, Current(chosen));
  if (chosen.settled && current.lanes != settings.lanes) {
    return absl::FailedPreconditionError(absl::StrCat(
        "'ucx' already runs with lanes '", std::string(NameOf(current.lanes)),
        "' in this process; set '", std::string(NameOf(settings.lanes)), "' before its first use"));
  }
  chosen.settings = settings;
  return absl::OkStatus();
}

absl::Status SetLanes(std::string_view name) {
  if (name.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(Settings settings, CurrentSettings());
  ASSIGN_OR_RETURN(settings.lanes, ParseLanes(name));
  return Set(settings);
}

absl::StatusOr<Settings> CurrentSettings() {
  Chosen& chosen = TheChosen();
  MutexLock lock(chosen.mu);
  return Current(chosen);
}

absl::StatusOr<Settings> SettleSettings() {
  Chosen& chosen = TheChosen();
  MutexLock lock(chosen.mu);
  ASSIGN_OR_RETURN(chosen.settings, Current(chosen));
  chosen.settled = true;
  return *chosen.settings;
}

}  // namespace penstock::transfer::ucx
