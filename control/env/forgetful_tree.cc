// SPDX-License-Identifier: Apache-2.0
#include "control/env/forgetful_tree.h"

#include <optional>
#include <utility>

#include "absl/strings/str_split.h"
#include "penstock/check.h"

namespace penstock {
namespace {

// Decides which of the numbered unsynced changes the device has after a power loss: a random number
// of the first changes, all but a random number of the first changes, or each change at random.
class Fate {
 public:
  Fate(size_t things, std::mt19937_64& random)
      : random_(random), kind_(random() % 3), bound_(random() % (things + 1)) {}
  bool Keeps(size_t i) {
    if (kind_ == 2) return random_() % 2 == 0;
    return (i < bound_) == (kind_ == 0);
  }
  // Returns whether change `i`, which Keeps() has rejected, is torn.
  bool Tears(size_t i) { return kind_ == 2 ? random_() % 2 == 0 : kind_ == 0 && i == bound_; }

 private:
  std::mt19937_64& random_;
  const uint64_t kind_;
  const size_t bound_;
};

struct FileChange {
  uint64_t at;                       // the offset of the bytes; without bytes, the new size of the
                                     // file
  std::optional<std::string> bytes;  // the bytes written; nullopt: the file was resized

  // Applies only the first `size` bytes of the change.
  void Apply(size_t size, char fill, std::string& file) const {
    if (!bytes.has_value()) return file.resize(at);
    if (file.size() < at + size) file.resize(at + size, fill);
    file.replace(at, size, *bytes, 0, size);
  }
  void Apply(std::string& file) const { Apply(bytes.has_value() ? bytes->size() : 0, '\0', file); }
};

std::string Remains(const std::string& synced, const std::vector<FileChange>& changes,
                    std::mt19937_64& random) {
  std::string bytes = synced;
  Fate fate(changes.size(), random);
  const char fill = random() % 2 == 0 ? '\0' : '\x5a';
  for (size_t i = 0; i < changes.size(); ++i) {
    const FileChange& change = changes[i];
    const size_t size = change.bytes.has_value() ? change.bytes->size() : 0;
    if (fate.Keeps(i)) {
      change.Apply(size, fill, bytes);
    } else if (size > 0 && fate.Tears(i)) {
      change.Apply(random() % size, fill, bytes);
      const size_t end = change.at + size;
      if (bytes.size() < end && random() % 2 == 0) bytes.resize(end, fill);
    }
  }
  return bytes;
}

using NodesByName = std::map<std::string, ForgetfulTree::NodePtr>;

// Name `gone` is removed, name `made` refers to `node`.
struct NameChange {
  std::string gone;
  std::string made;
  ForgetfulTree::NodePtr node;

  void Apply(NodesByName& names) const {
    if (!gone.empty()) names.erase(gone);
    if (!made.empty()) names[made] = node;
  }
};

struct Place {
  std::string folder;
  std::string name;
};
Place PlaceOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return {"", std::string(path)};
  return {std::string(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

}  // namespace

class ForgetfulTree::Node {
 public:
  explicit Node(bool folder) : is_folder(folder) {}

  void Name(NameChange change) {
    change.Apply(latest);
    name_changes.push_back(std::move(change));
  }
  void Change(FileChange change) {
    change.Apply(read);
    changes.push_back(std::move(change));
  }

  // Returns the content that the device may have for this node after a loss of power.
  NodePtr AfterPowerLoss(std::mt19937_64& random) const {
    auto left = std::make_shared<Node>(is_folder);
    left->bytes = Remains(bytes, changes, random);
    left->read = left->bytes;
    NodesByName kept = names;
    Fate fate(name_changes.size(), random);
    for (size_t i = 0; i < name_changes.size(); ++i) {
      if (fate.Keeps(i)) name_changes[i].Apply(kept);
    }
    for (const auto& [name, node] : kept) left->names[name] = node->AfterPowerLoss(random);
    left->latest = left->names;
    return left;
  }
  uint64_t SizeOfAll() const {
    uint64_t bytes = read.size();
    for (const auto& [name, node] : latest) bytes += node->SizeOfAll();
    return bytes;
  }
  void AddContents(const std::string& folder, Contents& to) const {
    for (const auto& [name, node] : latest) {
      const std::string path = folder.empty() ? name : folder + "/" + name;
      to[path] = node->is_folder ? std::nullopt : std::optional(node->read);
      node->AddContents(path, to);
    }
  }

  const bool is_folder;
  std::string bytes;                     // of a file, on the device
  std::vector<FileChange> changes;       // not synced
  std::string read;                      // what a process reads
  NodesByName names;                     // of a folder, on the device
  std::vector<NameChange> name_changes;  // not synced
  NodesByName latest;                    // `names` with `name_changes` applied
};

ForgetfulTree::ForgetfulTree() : root_(std::make_shared<Node>(true)) {}

ForgetfulTree::NodePtr ForgetfulTree::Find(std::string_view path) const {
  NodePtr node = root_;
  for (const absl::string_view name :
       absl::StrSplit(absl::string_view(path.data(), path.size()), '/', absl::SkipEmpty())) {
    const auto found = node->latest.find(std::string(name));
    if (found == node->latest.end()) return nullptr;
    node = found->second;
  }
  return node;
}

ForgetfulTree::NodePtr ForgetfulTree::Make(std::string_view path, bool is_folder) {
  if (NodePtr found = Find(path); found != nullptr) return found;
  const Place place = PlaceOf(path);
  NodePtr made = std::make_shared<Node>(is_folder);
  Find(place.folder)->Name({"", place.name, made});
  return made;
}

ForgetfulTree::NodePtr ForgetfulTree::MakeFile(std::string_view path) {
  return Make(path, false);
}

ForgetfulTree::NodePtr ForgetfulTree::MakeFolder(std::string_view path) {
  return Make(path, true);
}

void ForgetfulTree::Rename(std::string_view from, std::string_view to) {
  const Place before = PlaceOf(from), after = PlaceOf(to);
  PENSTOCK_CHECK(before.folder == after.folder);
  Find(before.folder)->Name({before.name, after.name, Find(from)});
}

void ForgetfulTree::Remove(std::string_view path) {
  const Place place = PlaceOf(path);
  Find(place.folder)->Name({place.name, "", nullptr});
}

void ForgetfulTree::Write(Node& file, uint64_t at, std::string_view bytes) {
  file.Change({at, std::string(bytes)});
}

void ForgetfulTree::Resize(Node& file, uint64_t size) {
  file.Change({size, std::nullopt});
}

void ForgetfulTree::Sync(Node& node) {
  for (const FileChange& change : std::exchange(node.changes, {})) change.Apply(node.bytes);
  for (const NameChange& change : std::exchange(node.name_changes, {})) change.Apply(node.names);
}

void ForgetfulTree::FailToSync(Node& file) {
  file.changes.clear();
}

std::string ForgetfulTree::Read(const Node& file) const {
  return file.read;
}

uint64_t ForgetfulTree::Size(const Node& file) const {
  return file.read.size();
}

uint64_t ForgetfulTree::SizeOfAll() const {
  return root_->SizeOfAll();
}

std::vector<std::string> ForgetfulTree::List(const Node& folder) const {
  std::vector<std::string> names;
  for (const auto& [name, node] : folder.latest) names.push_back(name);
  return names;
}

ForgetfulTree::Contents ForgetfulTree::All() const {
  Contents contents;
  root_->AddContents("", contents);
  return contents;
}

void ForgetfulTree::LosePower(std::mt19937_64& random) {
  root_ = root_->AfterPowerLoss(random);
}

}  // namespace penstock
