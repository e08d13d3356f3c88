// SPDX-License-Identifier: Apache-2.0
#include "control/env/path_lookup.h"

#include <fcntl.h>
#include <sys/stat.h>
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
#include "control/sync/mutex.h"
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

// An allowed folder or file.
struct Root {
  Components named;    // its absolute path, as it was named
  Components parts;    // its path without links
  Path real;           // the same
  bool there = false;  // when it was looked up

  bool operator==(const Root&) const = default;
};
using RootList = std::vector<Root>;

std::string Join(const Components& components) {
  return absl::StrCat("/", absl::StrJoin(components, "/"));
}

Root FindRoot(Components named) {
  std::error_code error;
  // Links above a folder that is missing are followed too.
  Path real = std::filesystem::weakly_canonical(Join(named), error);
  if (error) real = Join(named);
  const bool there = std::filesystem::exists(real, error);
  Components parts = Split(real.string());
  return {std::move(named), std::move(parts), std::move(real), there};
}

bool BeginsWith(const Components& path, const Components& root) {
  return std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first == root.end();
}

// Opens a folder by a path without links. Fails if a link has taken the place of a part of it.
Descriptor OpenFolder(const Path& path) {
  Descriptor folder(open("/", kWay));
  for (const Path& part : path.relative_path()) {
    if (!folder) break;
    folder = Descriptor(openat(folder.get(), part.c_str(), kWay));
  }
  return folder;
}

// One lookup in allowed folders.
class Walk {
 public:
  Walk(const RootList& roots, const std::string& path) : roots_(roots), path_(path) {}

  // Returns the root that the lookup expected and did not find, whose links may have changed.
  const Root* lost() const { return lost_; }

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
    for (const Root& root : roots_) {
      for (const Components* form : {&root.named, &root.parts}) {
        if (!BeginsWith(wanted, *form)) continue;
        root_ = &root;
        pending_.assign(wanted.begin() + static_cast<ptrdiff_t>(form->size()), wanted.end());
        if (!pending_.empty()) RETURN_IF_ERROR(PushRoot(root.real));
        return true;
      }
    }
    return false;
  }

  absl::StatusOr<bool> GoUp() {
    way_.pop_back();
    if (!way_.empty()) return true;
    Path above = root_->real.parent_path();
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
    const Path& root = root_->real;
    if (way_.size() > 1 || root == root.root_path()) {
      if (way_.empty()) RETURN_IF_ERROR(PushRoot(root));
      return Entry{std::move(way_.back()), ".", O_NOFOLLOW};
    }
    RETURN_IF_ERROR(PushRoot(root.parent_path()));
    const std::string name = root.filename().string();
    struct stat about;
    if (fstatat(way_.back().get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0 ||
        S_ISLNK(about.st_mode)) {
      lost_ = root_;
    }
    return Entry{std::move(way_.back()), name, O_NOFOLLOW};
  }

  absl::Status PushRoot(const Path& folder) {
    absl::Status pushed = Push(OpenFolder(folder));
    if (!pushed.ok()) lost_ = root_;
    return pushed;
  }

  absl::Status Push(Descriptor folder) {
    if (!folder) return Failed(errno);
    way_.push_back(std::move(folder));
    return absl::OkStatus();
  }

  absl::Status Failed(int error) const {
    return absl::ErrnoToStatus(error, absl::StrCat("cannot open ", path_));
  }

  const RootList& roots_;
  const std::string& path_;
  const Root* root_ = nullptr;  // where the lookup began
  const Root* lost_ = nullptr;
  std::vector<Descriptor> way_;  // the folders from *root_ on; empty: the path is *root_ itself
  Components pending_;
  int links_ = 0;
};

}  // namespace

// The allowed folders and files, with their paths without links.
class PathLookup::Roots {
 public:
  using List = std::shared_ptr<const RootList>;

  explicit Roots(const std::vector<std::string>& allowed) {
    RootList roots;
    for (const std::string& each : allowed) roots.push_back(FindRoot(Split(Absolute(each))));
    list_ = std::make_shared<const RootList>(std::move(roots));
  }

  List Get() const {
    MutexLock lock(mu_);
    return list_;
  }
  // Follows the links again of `lost` (of `list`; null: none) and of all roots that were missing.
  // Returns null if they lead where they led before.
  List Renew(const List& list, const Root* lost) {
    RootList roots = *list;
    for (size_t i = 0; i < roots.size(); ++i) {
      if (&(*list)[i] == lost || !roots[i].there) roots[i] = FindRoot(roots[i].named);
    }
    if (roots == *list) return nullptr;
    MutexLock lock(mu_);
    list_ = std::make_shared<const RootList>(std::move(roots));
    return list_;
  }

 private:
  mutable Mutex mu_;
  List list_ GUARDED_BY(mu_);
};

PathLookup::PathLookup(const std::vector<std::string>& allowed, std::string remedy)
    : roots_(std::make_shared<Roots>(allowed)), remedy_(std::move(remedy)) {}

absl::StatusOr<Entry> PathLookup::Find(const std::string& path) const {
  RETURN_IF_ERROR(CheckPath(path));
  if (!limited()) return Entry{Descriptor(AT_FDCWD), path};
  const Roots::List roots = roots_->Get();
  Walk walk(*roots, path);
  absl::StatusOr<std::optional<Entry>> entry = walk.Run();
  if (walk.lost() != nullptr || (entry.ok() && !entry->has_value())) {
    if (const Roots::List now = roots_->Renew(roots, walk.lost()); now != nullptr) {
      entry = Walk(*now, path).Run();
    }
  }
  RETURN_IF_ERROR(entry.status());
  if (entry->has_value()) return **std::move(entry);
  return absl::PermissionDeniedError(
      absl::StrCat(path, " is not allowed on this worker: ", remedy_));
}

absl::Status CheckPath(const std::string& path) {
  if (path.find('\0') == std::string::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the path ", absl::CHexEscape(path), " contains a NUL byte; leave it out"));
}

}  // namespace penstock
