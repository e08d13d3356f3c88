// SPDX-License-Identifier: Apache-2.0
// Writes files that survive a crash of the machine. files.h is the interface for reading data.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock {

// A file to which bytes are only appended. The destructor closes the file and does not sync it. Not
// thread-safe.
class DiskFile {
 public:
  virtual ~DiskFile() = default;
  virtual const std::string& path() const = 0;
  // After an error, some of the bytes may be in the file.
  virtual absl::Status Append(std::string_view bytes) = 0;
  // Makes the bytes durable. The file's name is durable after DiskFolder::Sync(). After an error,
  // the unsynced bytes may never become durable, although they can be read.
  virtual absl::Status Sync() = 0;
  // Gives the file the name `path`, which must be in the same folder. Atomic: if another file has
  // this name, that file is replaced in one step.
  virtual absl::Status Rename(const std::string& path) = 0;
  // NotFound if no file is at path(), DataLoss if another file has replaced this file there.
  virtual absl::Status CheckThere() = 0;
};

// A folder that is held open. Not thread-safe.
class DiskFolder {
 public:
  virtual ~DiskFolder() = default;
  // Makes durable the names of files that were made, renamed or removed in the folder. Opens no
  // further file.
  virtual absl::Status Sync() = 0;
};

// Any thread may call any method. Errors name the file. ResourceExhausted if the disk is full, or
// if no file descriptor is left.
class Disk {
 public:
  enum class Readers { kOwner, kByUmask };  // who may read a new file

  virtual ~Disk() = default;
  // Makes a file, or empties an existing one.
  virtual absl::StatusOr<std::unique_ptr<DiskFile>> Create(const std::string& path,
                                                           Readers readers) = 0;
  // Makes a file that only this user may read, and locks it until it is closed, if the file system
  // supports locks. AlreadyExists if there is a file at `path`.
  virtual absl::StatusOr<std::unique_ptr<DiskFile>> CreateLocked(const std::string& path) = 0;
  // Returns the whole content. NotFound if there is no such file.
  virtual absl::StatusOr<std::string> Read(const std::string& path) = 0;
  // Removes a file. OK if there is no such file.
  virtual absl::Status Remove(const std::string& path) = 0;
  // Removes a file that CreateLocked() made. Unavailable if a process has it open.
  virtual absl::Status RemoveUnlocked(const std::string& path) = 0;
  // Returns the names of the entries of a folder, without the folder's path, in any order.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& folder) = 0;
  // Makes a folder, and the missing folders above it, and makes their names durable. Only this user
  // may read the new folders.
  virtual absl::Status MakeFolders(const std::string& folder) = 0;
  virtual absl::StatusOr<std::unique_ptr<DiskFolder>> OpenFolder(const std::string& folder) = 0;
};

// This machine's file system.
Disk& LocalDisk();

// Returns the path of the folder that contains `path`.
std::string FolderOf(const std::string& path);

// Returns "cannot <what> <path>: <reason>" with the code for the errno value `error`.
absl::Status DiskError(int error, std::string_view what, const std::string& path);

}  // namespace penstock
