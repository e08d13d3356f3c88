// SPDX-License-Identifier: Apache-2.0
// Settings of a program as a table: one row per field of a config struct. From a
// row's name follow its flag, its environment variable and its key in a file:
//
//   client-timeout-ms of [dispatcher]: --client-timeout-ms,
//   PENSTOCK_DISPATCHER_CLIENT_TIMEOUT_MS, client_timeout_ms = 60000
//
// What is given in the program or as a flag counts first, then the environment,
// then the file, then the default.
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

namespace penstock {

struct Setting {
  using Target =
      std::variant<std::string*, int*, int64_t*, bool*, absl::Duration*, std::vector<std::string>*>;
  const char* name;
  Target target;  // holds the default; a Duration is given in milliseconds
  const char* help;
};

// client_timeout_ms, in a file.
std::string KeyOf(std::string_view name);
// PENSTOCK_<SECTION>_<NAME>; without the section if the name begins with it
// (PENSTOCK_WORKER_TAGS), and for what is one setting to all
// programs: PENSTOCK_DISPATCHER_ADDRESS, PENSTOCK_DATA_TRANSFER_PROTOCOL and the
// others that choose how elements travel.
std::string VariableOf(std::string_view section, std::string_view name);

// The value of a variable; nullopt if it is not set, or empty.
using Environment = std::function<std::optional<std::string>(const std::string& variable)>;
Environment ProcessEnvironment();

// Where a setting's value comes from, by the setting's name: a variable, or
// "file:line". What keeps its default is not there.
using Sources = std::map<std::string, std::string, std::less<>>;

// Names the settings file.
inline constexpr char kFileVariable[] = "PENSTOCK_CONFIG";

// Gives each of `settings` that is not among `given` its value from the
// environment or else from [section] of the file `path` (empty: that of
// PENSTOCK_CONFIG, if set). InvalidArgument names the place and the key, and the
// known ones where it is unknown; NotFound if the file cannot be read. A list is
// words with commas in the environment, an array in the file.
absl::StatusOr<Sources> Settle(std::string_view section, const std::vector<Setting>& settings,
                               const std::set<std::string>& given, std::string path,
                               const Environment& environment);

}  // namespace penstock
