// SPDX-License-Identifier: Apache-2.0
// Files on a device that forgets unsynced data when it loses power, in memory, for tests.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

// Paths begin at the tree's root folder, which is "". Not thread safe.
class ForgetfulTree {
 public:
  // A file or folder. It remains the same under a new name.
  class Node;
  using NodePtr = std::shared_ptr<Node>;

  ForgetfulTree();

  // Returns nullptr if there is none.
  NodePtr Find(std::string_view path) const;
  // REQUIRES: the folder exists. Returns what exists already.
  NodePtr MakeFile(std::string_view path);
  NodePtr MakeFolder(std::string_view path);
  // REQUIRES: both are in the same folder.
  void Rename(std::string_view from, std::string_view to);
  void Remove(std::string_view path);
  void Write(Node& file, uint64_t at, std::string_view bytes);
  void Resize(Node& file, uint64_t size);
  // Makes a file's bytes durable, or the names in a folder.
  void Sync(Node& node);
  // As Linux does, counts the unsynced bytes of a file as written although the device lacks them.
  void FailToSync(Node& file);

  // The content as the processes of this machine see it.
  std::string Read(const Node& file) const;
  std::vector<std::string> List(const Node& folder) const;
  // Bytes by path, nullopt for a folder.
  using Contents = std::map<std::string, std::optional<std::string>>;
  Contents All() const;

  // Leaves what the device may have after a loss of power. `random` decides what is there besides
  // the synced data: of the writes to each file and of the new and removed names in each folder the
  // first, the last, any, all or none. A write may be torn, with nothing, zeros or garbage in place
  // of its rest. Nodes from before are no longer in the tree.
  void LosePower(std::mt19937_64& random);

 private:
  NodePtr Make(std::string_view path, bool is_folder);

  NodePtr root_;
};

}  // namespace penstock
