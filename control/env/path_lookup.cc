// SPDX-License-Identifier: Apache-2.0
#include "control/env/path_lookup.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <deque>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Path = std::filesystem::path;
using Entry = PathLookup::Entry;
using Components = std::deque<std::string>;
constexpr int kMostLinks = 40;  // as in the kernel
constexpr int kWay = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

Components Split(const std::string& path) {
  Components components;
  for (absl::string_view each : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    if (each != ".") components.emplace_back(each);
  }
  return components;
}

std::string Absolute(const std::string& path) {
  if (path.starts_with('/')) return path;
  std::error_code error;
  return absl::StrCat(std::filesystem::current_path(error).string(), "/", path);
}

// One lookup in allowed folders.
class Walk {
 public:
  Walk(const std::vector<std::string>& allowed, const std::string& path)
      : allowed_(allowed), path_(path) {}

  // Returns nullopt if the path leaves the allowed folders.
  absl::StatusOr<std::optional<Entry>> Run() {
    ASSIGN_OR_RETURN(bool inside, Enter(Absolute(path_)));
    while (inside && !pending_.empty()) {
      const std::string next = std::move(pending_.front());
      pending_.pop_front();
      if (next == "..") {
        ASSIGN_OR_RETURN(inside, GoUp());
        continue;
      }
      ASSIGN_OR_RETURN(const std::optional<std::string> link, LinkAt(next));
      if (link.has_value()) {
        ASSIGN_OR_RETURN(inside, Follow(*link));
      } else if (pending_.empty()) {
        return Entry{std::move(way_.back()), next, O_NOFOLLOW};
      } else {
        RETURN_IF_ERROR(Push(Descriptor(openat(way_.back().get(), next.c_str(), kWay))));
      }
    }
    if (!inside) return std::nullopt;
    return Here();
  }

 private:
  // Restarts at the allowed folder that begins the absolute path `path`. False if there is none.
  absl::StatusOr<bool> Enter(const std::string& path) {
    way_.clear();
    const Components wanted = Split(path);
    for (const std::string& allowed : allowed_) {
      const std::string named = Absolute(allowed);
      std::error_code error;
      Path real = std::filesystem::canonical(named, error);
      if (error) real = absl::StrCat("/", absl::StrJoin(Split(named), "/"));
      for (const std::string& form : {named, real.string()}) {
        const Components root = Split(form);
        if (std::mismatch(root.begin(), root.end(), wanted.begin(), wanted.end()).first !=
            root.end()) {
          continue;
        }
        root_ = std::move(real);
        pending_.assign(wanted.begin() + static_cast<ptrdiff_t>(root.size()), wanted.end());
        if (!pending_.empty()) RETURN_IF_ERROR(Push(Descriptor(open(root_.c_str(), kWay))));
        return true;
      }
    }
    return false;
  }

  absl::StatusOr<bool> GoUp() {
    way_.pop_back();
    if (!way_.empty()) return true;
    Path above = root_.parent_path();
    for (; !pending_.empty() && pending_.front() == ".."; pending_.pop_front())
      above = above.parent_path();
    return Enter(absl::StrCat(above.string(), "/", absl::StrJoin(pending_, "/")));
  }

  absl::StatusOr<bool> Follow(const std::string& link) {
    if (++links_ > kMostLinks) return Failed(ELOOP);
    if (link.starts_with('/')) return Enter(absl::StrCat(link, "/", absl::StrJoin(pending_, "/")));
    const Components text = Split(link);
    pending_.insert(pending_.begin(), text.begin(), text.end());
    return true;
  }

  // Returns the text of the link `name`; nullopt if it is not a link, or is missing.
  absl::StatusOr<std::optional<std::string>> LinkAt(const std::string& name) const {
    char text[PATH_MAX];
    const ssize_t size = readlinkat(way_.back().get(), name.c_str(), text, sizeof text);
    if (size == sizeof text) return Failed(ENAMETOOLONG);
    if (size >= 0) return std::string(text, static_cast<size_t>(size));
    if (errno == EINVAL || errno == ENOENT) return std::nullopt;
    return Failed(errno);
  }

  // Returns the folder that the path ended in, or the allowed file that it named.
  absl::StatusOr<std::optional<Entry>> Here() {
    if (way_.size() > 1 || root_ == root_.root_path()) {
      if (way_.empty()) RETURN_IF_ERROR(Push(Descriptor(open(root_.c_str(), kWay))));
      return Entry{std::move(way_.back()), ".", O_NOFOLLOW};
    }
    RETURN_IF_ERROR(Push(Descriptor(open(root_.parent_path().c_str(), kWay))));
    return Entry{std::move(way_.back()), root_.filename().string(), O_NOFOLLOW};
  }

  absl::Status Push(Descriptor folder) {
    if (!folder) return Failed(errno);
    way_.push_back(std::move(folder));
    return absl::OkStatus();
  }

  absl::Status Failed(int error) const {
    return absl::ErrnoToStatus(error, absl::StrCat("cannot open ", path_));
  }

  const std::vector<std::string>& allowed_;
  const std::string& path_;
  Path root_;                    // the allowed folder or file, without links
  std::vector<Descriptor> way_;  // the folders from root_ on; empty: the path is root_ itself
  Components pending_;
  int links_ = 0;
};

}  // namespace

absl::StatusOr<Entry> PathLookup::Find(const std::string& path) const {
  RETURN_IF_ERROR(CheckPath(path));
  if (!limited_) return Entry{Descriptor(AT_FDCWD), path};
  ASSIGN_OR_RETURN(std::optional<Entry> entry, Walk(allowed_, path).Run());
  if (entry.has_value()) return *std::move(entry);
  return absl::PermissionDeniedError(
      absl::StrCat(path, " is not allowed on this worker: ", remedy_));
}

absl::Status CheckPath(const std::string& path) {
  if (path.find('\0') == std::string::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the path ", absl::CHexEscape(path), " contains a NUL byte; leave it out"));
}

}  // namespace penstock
