// SPDX-License-Identifier: Apache-2.0
// A TOML file as tables of plain values, each with the line it stands in.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock {

struct TomlValue {
  // What is none of the others (floats, dates, tables, mixed arrays) is only named.
  struct Other {
    std::string what;  // "a floating-point"
  };
  std::variant<bool, int64_t, std::string, std::vector<std::string>, Other> value;
};

struct TomlEntry {
  std::string key;
  TomlValue value;
  int line = 0;
};

struct TomlSection {
  std::string name;
  int line = 0;
  std::vector<TomlEntry> entries;  // by key
};

// NotFound if `path` cannot be read; InvalidArgument "path:line: what" if it is
// not TOML, or if a key stands outside of a section.
absl::StatusOr<std::vector<TomlSection>> ReadToml(const std::string& path);

}  // namespace penstock
