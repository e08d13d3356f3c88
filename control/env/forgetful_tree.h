// SPDX-License-Identifier: Apache-2.0
// Simulates, in memory, files on a device that forgets unsynced data when it loses power. For
// tests.
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

// Paths begin at the tree's root folder, whose path is "". Not thread-safe.
class ForgetfulTree {
 public:
  // A file or folder. Rename() does not change which node it is.
  class Node;
  using NodePtr = std::shared_ptr<Node>;

  ForgetfulTree();

  // Returns nullptr if there is no node at `path`.
  NodePtr Find(std::string_view path) const;
  // Return the new node, or the node that already exists at `path`. REQUIRES: the folder that
  // contains it exists.
  NodePtr MakeFile(std::string_view path);
  NodePtr MakeFolder(std::string_view path);
  // REQUIRES: `from` and `to` are in the same folder.
  void Rename(std::string_view from, std::string_view to);
  void Remove(std::string_view path);
  void Write(Node& file, uint64_t at, std::string_view bytes);
  void Resize(Node& file, uint64_t size);
  // Makes durable the bytes of a file, or the names in a folder.
  void Sync(Node& node);
  // Simulates a sync that fails: as on Linux, the file's unsynced bytes then count as written
  // although the device does not have them.
  void FailToSync(Node& file);

  // Return the content as the processes of this machine see it.
  std::string Read(const Node& file) const;
  // Return the bytes of a file, and of all files that have a name.
  uint64_t Size(const Node& file) const;
  uint64_t SizeOfAll() const;
  std::vector<std::string> List(const Node& folder) const;
  // Bytes by path, nullopt for a folder.
  using Contents = std::map<std::string, std::optional<std::string>>;
  Contents All() const;

  // Replaces the content with a content that the device may have after a loss of power: all synced
  // data and some unsynced data. `random` decides, for the writes to each file and for the new and
  // removed names in each folder, whether the device has the first, the last, any, all or none of
  // them. A write may be torn: the device then has only its beginning, and the rest is missing,
  // zeros or garbage. Nodes that were obtained before this call are no longer in the tree.
  void LosePower(std::mt19937_64& random);

 private:
  NodePtr Make(std::string_view path, bool is_folder);

  NodePtr root_;
};

}  // namespace penstock
