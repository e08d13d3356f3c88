// SPDX-License-Identifier: Apache-2.0
// files → dataset: reading records of a TFRecord file in the page cache, by record size.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/sources/formats/tfrecord_writer.h"
#include "penstock/sources.h"

namespace penstock {
namespace {

constexpr int64_t kFileBytes = 32 << 20;

// A file of records of `record_bytes`, removed at the end.
class RecordFile {
 public:
  explicit RecordFile(int64_t record_bytes)
      : name_(absl::StrCat("/tmp/files_bench.", ::getpid(), ".tfrecord")) {
    auto writer = TFRecordWriter::Create(name_);
    const std::string record(record_bytes, 'r');
    for (int64_t written = 0; writer.ok() && written < kFileBytes; written += record_bytes) {
      if (!(*writer)->Write(record).ok()) std::abort();
    }
    if (!writer.ok() || !(*writer)->Finish().ok()) std::abort();
  }
  ~RecordFile() { std::remove(name_.c_str()); }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

void ReadTFRecords(benchmark::State& state) {
  const RecordFile file(state.range(0));
  Iterator it = *Dataset::TFRecord(file.name()).Repeat().MakeIterator();
  for (auto _ : state) {
    const absl::StatusOr<std::optional<Element>> record = it.Next();
    if (!record.ok() || !record->has_value()) return state.SkipWithError("no record");
    benchmark::DoNotOptimize((*record)->tensor(0).string(0).data());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(ReadTFRecords)->Arg(100)->Arg(4 << 10)->Arg(128 << 10);

}  // namespace
}  // namespace penstock

BENCHMARK_MAIN();
