// SPDX-License-Identifier: Apache-2.0
// A folder for the present test.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace penstock {

// Makes an empty folder for the test that runs, and returns its path.
inline std::string NewTestFolder() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = absl::StrCat(test->test_suite_name(), "_", test->name());
  std::replace(name.begin(), name.end(), '/', '_');
  const std::string folder = absl::StrCat(::testing::TempDir(), "/etcd_", name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace penstock
