// SPDX-License-Identifier: Apache-2.0
// Names of jobs and ids of datasets with their namespace, as the dispatcher stores them: "resnet"
// is in the namespace "default", "vision/resnet" is in "vision", and "default/a/b" is the name
// "a/b" in the default namespace.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock::control {

inline constexpr std::string_view kDefaultNamespace = "default";
// The bound of a job's or dataset's name without its namespace, and of a run_id.
inline constexpr size_t kMaxNameBytes = 1024;
inline constexpr size_t kMaxNamespaceBytes = 256;

// REQUIRES: `name_space` contains no '/'. Empty: the namespace "default".
inline std::string ScopedName(std::string_view name_space, std::string_view name) {
  const bool is_default = name_space.empty() || name_space == kDefaultNamespace;
  if (is_default && name.find('/') == std::string_view::npos) return std::string(name);
  std::string scoped(is_default ? kDefaultNamespace : name_space);
  scoped += '/';
  scoped += name;
  return scoped;
}

inline std::string_view NamespaceOf(std::string_view scoped) {
  const size_t slash = scoped.find('/');
  return slash == std::string_view::npos ? kDefaultNamespace : scoped.substr(0, slash);
}

// Returns the name without its namespace.
inline std::string_view NameIn(std::string_view scoped) {
  const size_t slash = scoped.find('/');
  return slash == std::string_view::npos ? scoped : scoped.substr(slash + 1);
}

}  // namespace penstock::control
