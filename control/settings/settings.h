// SPDX-License-Identifier: Apache-2.0
// The settings of a program as a table with one row per field of a config struct. A row's name
// determines the setting's flag, its environment variable and its key in a file:
//
//   client-timeout-ms of [dispatcher]: --client-timeout-ms,
//   PENSTOCK_DISPATCHER_CLIENT_TIMEOUT_MS, client_timeout_ms = 60000
//
// The value comes from the first of these that gives one: the program or a flag, the environment,
// the file, the default.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "penstock/export.h"

namespace penstock {

struct Setting {
  using Target =
      std::variant<std::string*, int*, int64_t*, bool*, absl::Duration*, std::vector<std::string>*>;
  const char* name;
  Target target;  // contains the default; users give a Duration in milliseconds
  const char* help;
  // The setting's name in the previous release, which is accepted too; nullptr if it was the same.
  const char* old_name = nullptr;
  // False: an empty value is an error. Else a variable that a script left unset, as in
  // `--tls-certificate "$CERTIFICATE"`, would silently switch protection off.
  bool may_be_empty = true;
};

// Returns the setting's key in a file, such as client_timeout_ms.
PENSTOCK_EXPORT std::string KeyOf(std::string_view name);
// Returns the name of the setting's environment variable, PENSTOCK_<SECTION>_<NAME>. The section is
// left out if the name begins with it (PENSTOCK_WORKER_TAGS). It is also left out for settings that
// all programs share: PENSTOCK_DISPATCHER_ADDRESS, PENSTOCK_METRICS_TOKEN,
// PENSTOCK_DATA_TRANSFER_PROTOCOL and the other settings of the transfer of elements, and the
// settings of TLS.
std::string VariableOf(std::string_view section, std::string_view name);

// Returns the value of a variable, which may be empty; nullopt if the variable is not set.
using Environment = std::function<std::optional<std::string>(const std::string& variable)>;
Environment ProcessEnvironment();

// The origin of each setting's value, by the setting's name: a variable, or "file:line". A setting
// that keeps its default has no entry.
using Sources = std::map<std::string, std::string, std::less<>>;

// The variable that names the settings file.
inline constexpr char kFileVariable[] = "PENSTOCK_CONFIG";

// Gives each of `settings` that is not in `given` its value from the environment or, if the
// variable is not set, from [section] of the file `path` (empty: the file that PENSTOCK_CONFIG
// names, if set). A list is written with commas in the environment, and as an array in the file.
// An empty variable counts as not set. InvalidArgument for a value or key that is not valid, with
// its place and, for an unknown key, the known keys; also for an empty value of a setting that may
// not be empty. NotFound if the file cannot be read.
absl::StatusOr<Sources> Settle(std::string_view section, const std::vector<Setting>& settings,
                               const std::set<std::string>& given, std::string path,
                               const Environment& environment);

// Gives the settings `settings_of(NAME)` their values from each table [section.NAME] of the file,
// if there are any. Nothing comes from the environment, because a variable has no place for NAME.
// The file and the errors are those of Settle().
absl::Status SettleTables(
    std::string_view section,
    absl::FunctionRef<std::vector<Setting>(const std::string& name)> settings_of, std::string path,
    const Environment& environment);

}  // namespace penstock
