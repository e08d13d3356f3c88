// SPDX-License-Identifier: Apache-2.0
// Any bytes as a TFRecord file, as text and as records of a fixed length, raw and decompressed.
// Reading ends, records are inside the file, and skipping passes over the same records as reading.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "control/env/fake_files.h"
#include "dataplane/dataset/sources/formats/record_reader.h"
#include "penstock/check.h"

namespace penstock {
namespace {

// Returns the number of records and errors. No record is larger than `size`.
int Read(RecordReader& reader, size_t size) {
  int places = 0;
  for (int64_t before = 0;; before = reader.position()) {
    const absl::StatusOr<std::optional<std::string_view>> record = reader.Next();
    if (record.ok() && !record->has_value()) return places;
    PENSTOCK_CHECK(reader.position() > before);
    if (record.ok()) PENSTOCK_CHECK((*record)->size() <= size);
    ++places;
  }
}

int Skip(RecordReader& reader) {
  for (int places = 0;; ++places) {
    const absl::StatusOr<bool> skipped = reader.Skip();
    if (skipped.ok() && !*skipped) return places;
  }
}

std::unique_ptr<RecordReader> ReadTriples(BufferedFile file) {
  return ReadFixedLength(std::move(file),
                         {.record_bytes = 3, .header_bytes = 2, .footer_bytes = 1});
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using penstock::Compression;
  constexpr size_t kInflated = 1100;  // at most this many times larger
  penstock::FakeFiles files;
  files.Put("file", std::string(reinterpret_cast<const char*>(data), size));
  for (Compression compression : {Compression::kNone, Compression::kGzip, Compression::kZlib}) {
    const auto open = [&] {
      return penstock::BufferedFile(files.Open("file").value(), 0, compression);
    };
    for (const penstock::MakeRecordReader& make :
         {penstock::MakeRecordReader(penstock::ReadTFRecords),
          penstock::MakeRecordReader(penstock::ReadLines),
          penstock::MakeRecordReader(penstock::ReadTriples)}) {
      const size_t limit = compression == Compression::kNone ? size : kInflated * size;
      PENSTOCK_CHECK(penstock::Read(*make(open()), limit) == penstock::Skip(*make(open())));
    }
  }
  return 0;
}
