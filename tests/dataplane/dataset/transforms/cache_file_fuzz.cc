// SPDX-License-Identifier: Apache-2.0
// Any records as the file of a cache: it is refused, or its elements are read to an end and are
// inside the file. Input: records, each after its length (2 bytes, little endian). Checksums are
// added, so that they do not reject everything.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "control/env/fake_files.h"
#include "dataplane/dataset/sources/formats/record_reader.h"
#include "dataplane/dataset/sources/formats/tfrecord_writer.h"
#include "dataplane/dataset/transforms/cache/cache_file.h"
#include "dataplane/dataset/transforms/element_bytes.h"
#include "penstock/check.h"

namespace penstock {
namespace {

std::string Framed(std::string_view records) {
  std::string file;
  while (records.size() >= 2) {
    const size_t length = static_cast<uint8_t>(records[0]) | static_cast<uint8_t>(records[1]) << 8;
    file += TFRecordBytes(records.substr(2, length));
    records.remove_prefix(std::min(records.size(), 2 + length));
  }
  return file;
}

void Read(const std::string& bytes) {
  FakeFiles files;
  files.Put("cache", bytes);
  const absl::StatusOr<CacheFile> cache = OpenCacheFile("cache", files);
  if (!cache.ok()) {
    PENSTOCK_CHECK(absl::IsFailedPrecondition(cache.status()));
    return;
  }
  PENSTOCK_CHECK(cache->elements_end <= static_cast<int64_t>(bytes.size()));
  const auto records = ReadTFRecords(BufferedFile(Shared(cache->file), cache->elements_begin));
  while (true) {
    const auto record = records->Next();
    if (!record.ok() || !record->has_value()) return;
    const absl::StatusOr<Element> element =
        ElementFromBytes(DefaultPool(), **record, Scalar(kInt64));
    if (element.ok()) PENSTOCK_CHECK(element->tensor(0).element_count() == 1);
  }
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  penstock::Read(penstock::Framed({reinterpret_cast<const char*>(data), size}));
  return 0;
}
