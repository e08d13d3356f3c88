// SPDX-License-Identifier: Apache-2.0
// What replicas get on fake devices, for tests without page-locked memory.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/dataplane/replica/fake_gpus.h"
#include "tests/dataplane/replica/replicas.h"

namespace penstock {

// A process asks once whether memory is page-locked: cases of such suites run in a process
// without those that want it to be.
class WithoutPageLocks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ::setenv("PENSTOCK_PAGE_LOCK", "off", 1); }
};

inline ReplicaGroup Gpus(int count) {
  std::vector<std::string> devices;
  for (int i = 0; i < count; ++i) devices.push_back(absl::StrCat("GPU:", i));
  return *ReplicaGroup::Mirrored(devices);
}

// The int64 rows of an element on a device, as a stream of that device reads them.
inline Rows RowsOnDevice(const DeviceElement& element) {
  const auto stream = FakeGpus().MakeStream(element.device()).value();
  const auto read = FakeGpus().MakeEvent(element.device()).value();
  Rows rows(static_cast<size_t>(element.tensor(0).element_count()));
  EXPECT_TRUE(element.ReadyOn(stream->native()).ok());
  EXPECT_TRUE(
      stream->CopyToHost(rows.data(), element.tensor(0).raw(), element.tensor(0).byte_count())
          .ok());
  EXPECT_TRUE(element.ReadBy(stream->native()).ok());
  EXPECT_TRUE(stream->Record(*read).ok());
  EXPECT_TRUE(read->Wait().ok());
  return rows;
}

}  // namespace penstock
