// SPDX-License-Identifier: Apache-2.0
// Reads the values of replicas on the devices of the linked backend, fake or real.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/memory/device/device.h"
#include "tests/dataplane/replica/replicas.h"

namespace penstock {

inline ReplicaGroup Gpus(int count) {
  std::vector<std::string> devices;
  for (int i = 0; i < count; ++i) devices.push_back(absl::StrCat("GPU:", i));
  return *ReplicaGroup::Mirrored(devices);
}

// Returns the int64 rows of an element on a device, as a stream of that device reads them.
inline Rows RowsOnDevice(const DeviceElement& element) {
  DeviceBackend& backend = LinkedDeviceBackend();
  const auto stream = backend.MakeStream(element.device()).value();
  const auto read = backend.MakeEvent(element.device()).value();
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
