// SPDX-License-Identifier: Apache-2.0
#include "control/settings/settings.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "control/settings/toml_file.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// All programs share one file; each program reads its own section.
constexpr std::array<const char*, 5> kSections = {"dispatcher", "worker", "client", "files",
                                                  "namespaces"};
constexpr std::array<const char*, 11> kOneForAll = {"dispatcher-address", "data-transfer-protocol",
                                                    "fallback",           "ucx-lanes",
                                                    "transports",         "tls-ca",
                                                    "tls-certificate",    "tls-key",
                                                    "tls-mutual",         "token-file",
                                                    "metrics-token"};

bool IsAmong(std::string_view word, absl::Span<const char* const> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Returns a description of the target's type, for messages.
std::string TypeOf(const Setting::Target& target) {
  switch (target.index()) {
    case 0:
      return "a string";
    case 3:
      return "true or false";
    case 4:
      return "a whole number of milliseconds, 0 or more";
    case 5:
      return "an array of strings";
    default:
      return "a whole number";
  }
}

std::string TypeOf(const TomlValue& value) {
  struct Name {
    std::string operator()(bool) const { return "a boolean"; }
    std::string operator()(int64_t number) const { return absl::StrCat(number); }
    std::string operator()(const std::string&) const { return "a string"; }
    std::string operator()(const std::vector<std::string>&) const { return "an array of strings"; }
    std::string operator()(const TomlValue::Other& other) const { return other.what; }
  };
  return std::visit(Name(), value.value);
}

bool SetNumber(const Setting::Target& target, int64_t number) {
  if (auto* const* to = std::get_if<int*>(&target)) {
    if (number < std::numeric_limits<int>::min() || number > std::numeric_limits<int>::max()) {
      return false;
    }
    **to = static_cast<int>(number);
  } else if (auto* const* wide = std::get_if<int64_t*>(&target)) {
    **wide = number;
  } else if (auto* const* time = std::get_if<absl::Duration*>(&target)) {
    if (number < 0) return false;
    **time = absl::Milliseconds(number);
  } else {
    return false;
  }
  return true;
}

// Sets the target. Returns false if the value does not have the setting's type.
bool Set(const Setting::Target& target, const TomlValue& from) {
  if (const auto* flag = std::get_if<bool>(&from.value)) {
    auto* const* to = std::get_if<bool*>(&target);
    if (to != nullptr) **to = *flag;
    return to != nullptr;
  }
  if (const auto* text = std::get_if<std::string>(&from.value)) {
    auto* const* to = std::get_if<std::string*>(&target);
    if (to != nullptr) **to = *text;
    return to != nullptr;
  }
  if (const auto* words = std::get_if<std::vector<std::string>>(&from.value)) {
    auto* const* to = std::get_if<std::vector<std::string>*>(&target);
    if (to != nullptr) **to = *words;
    return to != nullptr;
  }
  const auto* number = std::get_if<int64_t>(&from.value);
  return number != nullptr && SetNumber(target, *number);
}

bool SetFromText(const Setting::Target& target, const std::string& text) {
  if (auto* const* to = std::get_if<std::string*>(&target)) {
    **to = text;
    return true;
  }
  if (auto* const* words = std::get_if<std::vector<std::string>*>(&target)) {
    **words = absl::StrSplit(text, ',', absl::SkipWhitespace());
    for (std::string& word : **words) absl::StripAsciiWhitespace(&word);
    return true;
  }
  if (auto* const* flag = std::get_if<bool*>(&target)) return absl::SimpleAtob(text, *flag);
  int64_t number;
  return absl::SimpleAtoi(text, &number) && SetNumber(target, number);
}

absl::Status CheckSections(const std::string& path, const std::vector<TomlSection>& sections) {
  for (const TomlSection& section : sections) {
    if (IsAmong(section.name, kSections)) continue;
    return absl::InvalidArgumentError(absl::StrCat(path, ":", section.line, ": unknown section [",
                                                   section.name, "]; use one of [",
                                                   absl::StrJoin(kSections, "], ["), "]"));
  }
  return absl::OkStatus();
}

absl::Status UnknownKey(const std::string& place, const std::string& key, std::string_view section,
                        const std::vector<Setting>& settings) {
  std::vector<std::string> known;
  for (const Setting& setting : settings) known.push_back(KeyOf(setting.name));
  return absl::InvalidArgumentError(absl::StrCat(place, ": [", std::string(section),
                                                 "] has no key '", key, "'; it has ",
                                                 absl::StrJoin(known, ", ")));
}

// Returns the sections of the file, or of the file that the environment names; none if neither
// names one. Sets `path` to the file.
absl::StatusOr<std::vector<TomlSection>> ReadSections(const Environment& environment,
                                                      std::string& path) {
  if (path.empty()) path = environment(kFileVariable).value_or("");
  if (path.empty()) return std::vector<TomlSection>();
  ASSIGN_OR_RETURN(std::vector<TomlSection> sections, ReadToml(path));
  RETURN_IF_ERROR(CheckSections(path, sections));
  return sections;
}

// Returns an error if `setting` has an empty value that it may not have. `place` is where the value
// came from.
absl::Status CheckNotEmpty(const Setting& setting, const std::string& place) {
  const auto* const* text = std::get_if<std::string*>(&setting.target);
  if (setting.may_be_empty || text == nullptr || !(**text).empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(place, " is empty; give ", KeyOf(setting.name),
                                                 " a value, or leave it out altogether"));
}

// The variable from which a setting gets its value, and this value.
struct Variable {
  std::string name;
  std::string text;
};

std::optional<Variable> FindVariable(std::string_view section, const Setting& setting,
                                     const Environment& environment) {
  for (const char* name : {setting.name, setting.old_name}) {
    if (name == nullptr) continue;
    const std::string variable = VariableOf(section, name);
    const std::optional<std::string> text = environment(variable);
    if (text.has_value() && !(text->empty() && setting.may_be_empty)) {
      return Variable{variable, *text};
    }
  }
  return std::nullopt;
}

// Sets the settings that are not in `settled` from the environment, and adds them to it.
absl::Status SettleFromEnvironment(std::string_view section, const std::vector<Setting>& settings,
                                   const Environment& environment, std::set<std::string>& settled,
                                   Sources& sources) {
  for (const Setting& setting : settings) {
    if (settled.contains(setting.name)) continue;
    const std::optional<Variable> found = FindVariable(section, setting, environment);
    if (!found.has_value()) continue;
    if (found->text.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(found->name, " is empty; give it a value, or unset it"));
    }
    if (!SetFromText(setting.target, found->text)) {
      return absl::InvalidArgumentError(absl::StrCat(found->name, " is '", found->text,
                                                     "', but must be ", TypeOf(setting.target)));
    }
    sources[setting.name] = found->name;
    settled.insert(setting.name);
  }
  return absl::OkStatus();
}

// Sets the settings that are not in `settled` from a section of the file `path`.
absl::Status SettleFromSection(const TomlSection& section, const std::vector<Setting>& settings,
                               const std::string& path, const std::set<std::string>& settled,
                               Sources& sources) {
  for (const TomlEntry& entry : section.entries) {
    const std::string place = absl::StrCat(path, ":", entry.line);
    const auto setting = std::find_if(settings.begin(), settings.end(), [&](const Setting& row) {
      return KeyOf(row.name) == entry.key ||
             (row.old_name != nullptr && KeyOf(row.old_name) == entry.key);
    });
    if (setting == settings.end()) return UnknownKey(place, entry.key, section.name, settings);
    if (settled.contains(setting->name)) continue;
    if (!Set(setting->target, entry.value)) {
      return absl::InvalidArgumentError(absl::StrCat(place, ": ", entry.key, " is ",
                                                     TypeOf(entry.value), ", but must be ",
                                                     TypeOf(setting->target)));
    }
    RETURN_IF_ERROR(CheckNotEmpty(*setting, absl::StrCat(place, ": ", entry.key)));
    sources[setting->name] = place;
  }
  return absl::OkStatus();
}

}  // namespace

std::string KeyOf(std::string_view name) {
  return absl::StrReplaceAll(std::string(name), {{"-", "_"}});
}

std::string VariableOf(std::string_view section, std::string_view name) {
  const std::string of = absl::StrCat(std::string(section), "-");
  const bool whole = IsAmong(name, kOneForAll) || name.starts_with(of);
  const std::string words = absl::StrCat(whole ? "" : of, std::string(name));
  return absl::StrCat("PENSTOCK_", absl::AsciiStrToUpper(KeyOf(words)));
}

Environment ProcessEnvironment() {
  return [](const std::string& variable) -> std::optional<std::string> {
    const char* value = std::getenv(variable.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

absl::StatusOr<Sources> Settle(std::string_view section, const std::vector<Setting>& settings,
                               const std::set<std::string>& given, std::string path,
                               const Environment& environment) {
  Sources sources;
  std::set<std::string> settled = given;
  for (const Setting& setting : settings) {
    if (!given.contains(setting.name)) continue;
    RETURN_IF_ERROR(CheckNotEmpty(setting, absl::StrCat("--", setting.name)));
  }
  RETURN_IF_ERROR(SettleFromEnvironment(section, settings, environment, settled, sources));
  ASSIGN_OR_RETURN(const std::vector<TomlSection> sections, ReadSections(environment, path));
  for (const TomlSection& each : sections) {
    if (each.name != section) continue;
    RETURN_IF_ERROR(SettleFromSection(each, settings, path, settled, sources));
  }
  return sources;
}

absl::Status SettleTables(
    std::string_view section,
    absl::FunctionRef<std::vector<Setting>(const std::string& name)> settings_of, std::string path,
    const Environment& environment) {
  ASSIGN_OR_RETURN(const std::vector<TomlSection> sections, ReadSections(environment, path));
  for (const TomlSection& each : sections) {
    if (each.name != section) continue;
    for (const TomlEntry& entry : each.entries) {
      if (std::ranges::count(each.tables, entry.key, &TomlSection::name) > 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(path, ":", entry.line, ": ", entry.key, " is ",
                                                     TypeOf(entry.value), ", but must be a table [",
                                                     each.name, ".", entry.key, "]"));
    }
    for (TomlSection table : each.tables) {
      const std::vector<Setting> settings = settings_of(table.name);
      table.name = absl::StrCat(each.name, ".", table.name);
      Sources sources;
      RETURN_IF_ERROR(SettleFromSection(table, settings, path, {}, sources));
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock
