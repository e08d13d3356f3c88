// SPDX-License-Identifier: Apache-2.0
// Any bytes as a TFRecord file and as text: reading ends, records lie inside
// the file, and skipping passes over what reading gives.
#include <cstddef>
#include <cstdint>
#include <string>

#include "control/env/fake_files.h"
#include "dataplane/dataset/sources/record_reader.h"
#include "penstock/check.h"

namespace penstock {
namespace {

int Read(Files& files, MakeRecordReader make_reader, int64_t size) {
  const auto reader = make_reader(files.Open("file").value(), 0);
  int places = 0;
  for (int64_t before = 0;; before = reader->position()) {
    const absl::StatusOr<std::optional<std::string_view>> record = reader->Next();
    PENSTOCK_CHECK(reader->position() <= size);
    if (record.ok() && !record->has_value()) return places;
    PENSTOCK_CHECK(reader->position() > before);
    if (record.ok()) PENSTOCK_CHECK(static_cast<int64_t>((*record)->size()) <= size);
    ++places;
  }
}

int Skip(Files& files, MakeRecordReader make_reader) {
  const auto reader = make_reader(files.Open("file").value(), 0);
  for (int places = 0;; ++places) {
    const absl::StatusOr<bool> skipped = reader->Skip();
    if (skipped.ok() && !*skipped) return places;
  }
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  penstock::FakeFiles files;
  files.Put("file", std::string(reinterpret_cast<const char*>(data), size));
  for (penstock::MakeRecordReader make : {penstock::ReadTFRecords, penstock::ReadLines})
    PENSTOCK_CHECK(penstock::Read(files, make, size) == penstock::Skip(files, make));
  return 0;
}
