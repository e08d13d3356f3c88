// SPDX-License-Identifier: Apache-2.0
// Maps, sources and transforms that programs and plug-ins register by name and version. They remain
// registered for the life of the program.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/sync/mutex.h"

namespace penstock {

// Thread-safe. T has an int `version`.
template <class T>
class Registered {
 public:
  explicit Registered(std::string what) : what_(std::move(what)) {}

  const std::string& what() const { return what_; }  // "source"

  // AlreadyExists if the name is registered with a different version. Adding the same version again
  // changes nothing.
  absl::Status Add(std::string name, T value) {
    MutexLock lock(mu_);
    const auto found = values_.find(name);
    if (found == values_.end()) {
      values_[std::move(name)] = std::make_shared<const T>(std::move(value));
      return absl::OkStatus();
    }
    if (found->second->version == value.version) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat(what_, " '", name, "' is registered as version ",
                                                 found->second->version, ", not ", value.version));
  }

  // Returns the value under this name. NotFound explains how to register one.
  absl::StatusOr<std::shared_ptr<const T>> Find(const std::string& name) const {
    MutexLock lock(mu_);
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    return Missing(absl::StrCat("'", name, "'"));
  }

  // Does the same, but returns NotFound also for a different version.
  absl::StatusOr<std::shared_ptr<const T>> Find(const std::string& name, int64_t version) const {
    MutexLock lock(mu_);
    const auto found = values_.find(name);
    if (found == values_.end()) return Missing(absl::StrCat("'", name, "' version ", version));
    if (found->second->version == version) return found->second;
    return absl::NotFoundError(absl::StrCat(
        what_, " '", name, "' version ", version,
        " is not registered in this program, which has version ", found->second->version));
  }

  std::vector<std::string> Names() const {
    MutexLock lock(mu_);
    return NamesLocked();
  }

 private:
  std::vector<std::string> NamesLocked() const REQUIRES(mu_) {
    std::vector<std::string> names;
    for (const auto& [name, value] : values_) names.push_back(name);
    return names;
  }
  absl::Status Missing(const std::string& wanted) const REQUIRES(mu_) {
    return absl::NotFoundError(
        absl::StrCat(what_, " ", wanted,
                     " is not registered in this program; link the library that registers it, or "
                     "load its plug-in (penstock worker --plugins PATH; LoadPlugin(PATH) "
                     "elsewhere). Registered: ",
                     values_.empty() ? "none" : absl::StrJoin(NamesLocked(), ", ")));
  }

  const std::string what_;
  mutable Mutex mu_;
  std::map<std::string, std::shared_ptr<const T>> values_ GUARDED_BY(mu_);
};

}  // namespace penstock
