// SPDX-License-Identifier: Apache-2.0
#include "control/settings/toml_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace penstock {
namespace {

const char* NameOf(toml::node_type type) {
  switch (type) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array of values other than strings";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time:
      return "a date or time";
    default:
      return "something else";
  }
}

TomlValue ValueOf(const toml::node& node) {
  if (const auto* flag = node.as_boolean()) return {flag->get()};
  if (const auto* number = node.as_integer()) return {number->get()};
  if (const auto* text = node.as_string()) return {text->get()};
  const toml::array* array = node.as_array();
  if (array == nullptr || !(array->empty() || array->is_homogeneous<std::string>())) {
    return {TomlValue::Other{NameOf(node.type())}};
  }
  std::vector<std::string> words;
  for (const toml::node& word : *array) words.push_back(word.as_string()->get());
  return {std::move(words)};
}

int LineOf(const toml::node& node) {
  return static_cast<int>(node.source().begin.line);
}

TomlSection SectionOf(std::string name, const toml::table& table) {
  TomlSection section{std::move(name), LineOf(table), {}, {}};
  for (const auto& [key, value] : table) {
    const std::string text(key.str());
    section.entries.push_back({text, ValueOf(value), LineOf(value)});
    if (value.is_table()) section.tables.push_back(SectionOf(text, *value.as_table()));
  }
  return section;
}

}  // namespace

absl::StatusOr<std::vector<TomlSection>> ReadToml(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::error_code error;
  if (!in.is_open() || std::filesystem::is_directory(path, error)) {
    return absl::NotFoundError(absl::StrCat("cannot read the settings file ", path, ": ",
                                            std::strerror(in.is_open() ? EISDIR : errno)));
  }
  return ParseToml(std::string(std::istreambuf_iterator<char>(in), {}), path);
}

absl::StatusOr<std::vector<TomlSection>> ParseToml(const std::string& text,
                                                   const std::string& path) {
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    const toml::parse_error& wrong = parsed.error();
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", wrong.source().begin.line, ": ", std::string(wrong.description())));
  }
  std::vector<TomlSection> sections;
  for (const auto& [name, node] : parsed.table()) {
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", LineOf(node), ": '", std::string(name.str()),
                       "' is not in a section; write it in one, such as [worker]"));
    }
    sections.push_back(SectionOf(std::string(name.str()), *table));
  }
  return sections;
}

}  // namespace penstock
