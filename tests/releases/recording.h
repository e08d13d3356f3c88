// SPDX-License-Identifier: Apache-2.0
// The files of one release's folder.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace penstock::control {

// Returns the folders of the recorded releases.
inline std::vector<std::string> RecordedReleases() {
  std::vector<std::string> releases;
  for (const auto& entry : std::filesystem::directory_iterator(PENSTOCK_RELEASES)) {
    if (entry.is_directory()) releases.push_back(entry.path().string());
  }
  std::sort(releases.begin(), releases.end());
  return releases;
}

// Bytes and their name, one line of a file: "client_up.hello 0a0b0c".
using NamedBytes = std::pair<std::string, std::string>;

inline std::vector<NamedBytes> ReadRecording(const std::string& path) {
  std::vector<NamedBytes> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t space = line.find(' ');
    EXPECT_NE(space, std::string::npos) << path << ": " << line;
    if (space == std::string::npos) break;
    lines.emplace_back(line.substr(0, space), absl::HexStringToBytes(line.substr(space + 1)));
  }
  EXPECT_FALSE(lines.empty()) << path;
  return lines;
}

inline void WriteRecording(const std::string& path, const std::vector<NamedBytes>& lines) {
  std::ofstream file(path, std::ios::trunc);
  for (const auto& [name, bytes] : lines) {
    file << name << " " << absl::BytesToHexString(bytes) << "\n";
  }
  ASSERT_TRUE(file.flush().good()) << path;
}

}  // namespace penstock::control
