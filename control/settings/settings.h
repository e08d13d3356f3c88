// SPDX-License-Identifier: Apache-2.0
// Settings of a program as a table: one row per field of a config struct. A row's name determines
// its flag, its environment variable and its key in a file:
//
//   client-timeout-ms of [dispatcher]: --client-timeout-ms,
//   PENSTOCK_DISPATCHER_CLIENT_TIMEOUT_MS, client_timeout_ms = 60000
//
// A value given in the program or as a flag comes first, then the environment, then the file, then
// the default.
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

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "penstock/export.h"

namespace penstock {

struct Setting {
  using Target =
      std::variant<std::string*, int*, int64_t*, bool*, absl::Duration*, std::vector<std::string>*>;
  const char* name;
  Target target;  // holds the default; a Duration is given in milliseconds
  const char* help;
  // The name in the previous release, which is accepted too; nullptr: the same name.
  const char* old_name = nullptr;
};

// Returns the key in a file, such as client_timeout_ms.
PENSTOCK_EXPORT std::string KeyOf(std::string_view name);
// Returns PENSTOCK_<SECTION>_<NAME>. The section is left out if the name begins with it
// (PENSTOCK_WORKER_TAGS), and for settings that all programs share: PENSTOCK_DISPATCHER_ADDRESS,
// PENSTOCK_DATA_TRANSFER_PROTOCOL, the other settings of the transfer of elements, those of TLS,
// and PENSTOCK_METRICS_TOKEN.
std::string VariableOf(std::string_view section, std::string_view name);

// Returns the value of a variable; nullopt if it is not set, or empty.
using Environment = std::function<std::optional<std::string>(const std::string& variable)>;
Environment ProcessEnvironment();

// The origin of each setting's value, by the setting's name: a variable, or "file:line". A setting
// that keeps its default has no entry.
using Sources = std::map<std::string, std::string, std::less<>>;

// The variable that names the settings file.
inline constexpr char kFileVariable[] = "PENSTOCK_CONFIG";

// Gives each of `settings` that is not in `given` its value from the environment, or else from
// [section] of the file `path` (empty: the file that PENSTOCK_CONFIG names, if set).
// InvalidArgument names the place and the key, and for an unknown key also the known ones; NotFound
// if the file cannot be read. A list is written with commas in the environment, and as an array in
// the file.
absl::StatusOr<Sources> Settle(std::string_view section, const std::vector<Setting>& settings,
                               const std::set<std::string>& given, std::string path,
                               const Environment& environment);

}  // namespace penstock
