// SPDX-License-Identifier: Apache-2.0
// Reads a TOML file as tables of plain values, each with the number of its line.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock {

struct TomlValue {
  // A value of any other type (float, date, table, mixed array). Only a description of the type is
  // kept.
  struct Other {
    std::string what;  // such as "a number with a fraction"
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
  std::vector<TomlEntry> entries;  // sorted by key
  // The tables in it, such as [namespaces.vision] in [namespaces], sorted by name. Each is also one
  // of `entries`, as a value of another type.
  std::vector<TomlSection> tables;
};

// NotFound if `path` cannot be read. InvalidArgument "path:line: what" if the file is not TOML, or
// if a key is outside a section.
absl::StatusOr<std::vector<TomlSection>> ReadToml(const std::string& path);
// Parses the content of a file; `path` is for errors.
absl::StatusOr<std::vector<TomlSection>> ParseToml(const std::string& text,
                                                   const std::string& path);

}  // namespace penstock
