// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/graph/registry.h"
#include "penstock/check.h"
#include "tests/dataplane/dataset/suite.h"

namespace penstock::suite {
namespace {

// Puts the files of other programs (data/make_files.py) under /shards/, and damaged copies of them.
void PutShards(FakeFiles& files) {
  for (const auto& entry : std::filesystem::directory_iterator(TEST_DATA)) {
    std::ifstream in(entry.path(), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    PENSTOCK_CHECK(!bytes.empty());
    const std::string name = "/shards/" + entry.path().filename().string();
    files.Put(name + ".cut", bytes.substr(0, bytes.size() * 2 / 3));
    if (name.ends_with(".parquet")) {  // damages values, but not the metadata that locates them
      std::string bad = bytes;
      for (size_t i = 4; i < 600; ++i) bad[i] ^= 0x55;
      files.Put(name + ".bad", bad);
    }
    files.Put(name, std::move(bytes));
  }
  files.Put("/shards/triples.bin", "hheaadbbecct");
  files.Put("/shards/no_triples.bin", "hht");
  for (const char* name : {"cat/a.jpg", "cat/b.PNG", "cat/notes.txt", "dog/c.jpeg", "empty/readme",
                           "eel/d.ppm", "eel/e.jpg", "f.jpg"})
    files.Put(absl::StrCat("/images/", name), absl::StrCat("contents of ", name));
  files.Put("/images/newt/empty.jpg", "");
}

Dataset Pairs() {
  return Dataset::Npy(
      {"/shards/pair.npz", "/shards/packed_pair.npz"},
      Spec::Dict({{"image", Dense(kUInt8, Shape({kUnknownDim}))}, {"label", Scalar(kInt64)}}));
}

// Cases for programs that were built with Arrow.
std::vector<Case> ParquetCases() {
  static const Spec* const columns =
      new Spec(Spec::Dict({{"id", Scalar(kInt64)},
                           {"name", Bytes()},
                           {"weights", Dense(kFloat32, Shape({kUnknownDim}))}}));
  return {
      {.name = "Parquet",
       .kinds = {"Parquet"},
       .make =
           [] {
             return Dataset::Parquet({"/shards/table.parquet", "/shards/table.parquet"}, *columns);
           }},
      {.name = "ParquetDamaged",
       .kinds = {"Parquet"},
       .make =
           [] {
             return Dataset::Parquet({"/shards/table.parquet.bad", "/shards/table.parquet"},
                                     Spec::Dict({{"name", Bytes()}, {"score", Scalar(kFloat64)}}));
           }},
      {.name = "ParquetOf",
       .kinds = {"ParquetOf"},
       .make =
           [] {
             return Dataset::ListFiles("/shards/*.parquet").Interleave([](Expr file) {
               return Dataset::Parquet(file, *columns);
             });
           }},
  };
}

}  // namespace

std::vector<Case> SourceCases() {
  static const bool put = (PutShards(TestFiles()), true);
  static_cast<void>(put);
  std::vector<Case> cases = {
      {.name = "Range", .kinds = {"Range"}, .make = [] { return Dataset::Range(-3, 40, 2); }},
      {.name = "RangeDownwards",
       .kinds = {"Range"},
       .make = [] { return Dataset::Range(10, -10, -3); }},
      {.name = "RangeOfNothing", .kinds = {"Range"}, .make = [] { return Dataset::Range(0); }},
      {.name = "FromTensors",
       .kinds = {"FromTensors"},
       .make = [] { return Dataset::FromTensors(2.5f); }},
      {.name = "FromTensorsOfNothing", .kinds = {"FromTensors"}, .make = [] { return Dataset(); }},
      {.name = "FromTensorSlices",
       .kinds = {"FromTensorSlices"},
       .make =
           [] {
             return Dataset::FromTensorSlices<int32_t>({3, 1, 4, 1, 5, 9, 2, 6});
           }},
      {.name = "FromTensorSlicesOfStrings",
       .kinds = {"FromTensorSlices"},
       .make =
           [] {
             return Dataset::FromTensorSlices<std::string>({"", "b", "", "four", "five"});
           }},
      {.name = "ListFiles",
       .kinds = {"ListFiles"},
       .make = [] { return Dataset::ListFiles("/data/*"); }},
      {.name = "ListFilesShuffled",
       .kinds = {"ListFiles"},
       .make =
           [] {
             return Dataset::ListFiles({"/data/*.txt", "/data/a*"}, {.shuffle = true, .seed = 3});
           }},
      {.name = "TFRecordDataset",
       .kinds = {"TFRecordDataset"},
       .make =
           [] {
             return Dataset::TFRecord({"/data/a.tfrecord", "/data/b.tfrecord", "/data/c.tfrecord"});
           }},
      {.name = "TextLineDataset",
       .kinds = {"TextLineDataset"},
       .make =
           [] {
             return Dataset::TextLine({"/data/b.txt", "/data/c.txt", "/data/a.txt"});
           }},
      {.name = "RangeOf",
       .kinds = {"RangeOf"},
       .make = [] { return Dataset::Range(6).FlatMap([](Expr x) { return Dataset::Range(x); }); }},
      {.name = "TensorsOf",
       .kinds = {"TensorsOf"},
       .make =
           [] {
             return Dataset::Range(6).FlatMap([](Expr x) {
               return Dataset::FromTensors(Struct({{"x", x}, {"twice", x * 2}}));
             });
           }},
      {.name = "TensorSlicesOf",
       .kinds = {"TensorSlicesOf"},
       .make =
           [] {
             return Dataset::FromTensorSlices<int32_t>({4, 5, 6}).FlatMap(
                 [](Expr x) { return Dataset::FromTensorSlices(OneHot(x, 6, kInt32)); });
           }},
      {.name = "TwoSourcesInOneFunction",
       .kinds = {"RangeOf", "TensorsOf"},
       .make =
           [] {
             return Dataset::Range(5).FlatMap([](Expr x) {
               return Dataset::Range(x).Concatenate(Dataset::FromTensors(x * 100));
             });
           }},
      {.name = "TFRecordDatasetOf",
       .kinds = {"TFRecordDatasetOf"},
       .make = [] { return Dataset::ListFiles("/data/*.tfrecord").FlatMap(Dataset::TFRecord); }},
      {.name = "TextLineDatasetOf",
       .kinds = {"TextLineDatasetOf"},
       .make =
           [] {
             return Dataset::ListFiles("/data/*.txt", {.shuffle = true})
                 .Interleave(Dataset::TextLine, {.cycle_length = 2});
           }},
      {.name = "TFRecordDatasetOfGzip",
       .kinds = {"TFRecordDataset"},
       .make =
           [] {
             return Dataset::TFRecord({"/shards/five.tfrecord.gz", "/shards/five.tfrecord.gz.cut",
                                       "/shards/missing", "/shards/five.tfrecord.gz"},
                                      {.compression = Compression::kGzip});
           }},
      {.name = "TFRecordDatasetOfNamedZlib",
       .kinds = {"TFRecordDatasetOf"},
       .make =
           [] {
             return Dataset::ListFiles("/shards/five.tfrecord.zlib*").Interleave([](Expr file) {
               return Dataset::TFRecord(file, {.compression = Compression::kZlib});
             });
           }},
      {.name = "TextLineDatasetOfGzip",
       .kinds = {"TextLineDataset"},
       .make =
           [] {
             return Dataset::TextLine({"/shards/lines.txt.gz", "/shards/lines.txt.gz.cut"},
                                      {.compression = Compression::kGzip});
           }},
      {.name = "FixedLengthRecordDataset",
       .kinds = {"FixedLengthRecordDataset"},
       .make =
           [] {
             return Dataset::FixedLengthRecord({"/shards/triples.bin", "/shards/no_triples.bin",
                                                "/shards/lines.txt.gz", "/shards/triples.bin"},
                                               3, {.header_bytes = 2, .footer_bytes = 1});
           }},
      {.name = "FixedLengthRecordDatasetOf",
       .kinds = {"FixedLengthRecordDatasetOf"},
       .make =
           [] {
             return Dataset::ListFiles("/shards/five.tfrecord.gz*").FlatMap([](Expr file) {
               return Dataset::FixedLengthRecord(file, 64, {.compression = Compression::kGzip});
             });
           }},
      {.name = "TarShards",
       .kinds = {"TarShards"},
       .make =
           [] {
             return Dataset::TarShards({"/shards/ustar.tar", "/shards/pax.tar", "/shards/missing",
                                        "/shards/gnu.tar", "/shards/samples.tar.gz"},
                                       {"cls", "jpg;png"}, {.url = true});
           }},
      {.name = "TarShardsDamaged",
       .kinds = {"TarShards"},
       .make =
           [] {
             return Dataset::TarShards(
                 {"/shards/ustar.tar.cut", "/shards/samples.tar.gz.cut", "/shards/incomplete.tar",
                  "/shards/rows.npy", "/shards/gnu.tar.cut"},
                 {"jpg;jpeg;png", "cls"});
           }},
      {.name = "TarShardsWithoutTheIncomplete",
       .kinds = {"TarShards"},
       .make =
           [] {
             return Dataset::TarShards(
                 {"/shards/incomplete.tar", "/shards/ustar.tar", "/shards/ustar.tar.cut"},
                 {"jpg", "cls"}, {.skip_incomplete = true});
           }},
      {.name = "TarShardsOf",
       .kinds = {"TarShardsOf"},
       .make =
           [] {
             return Dataset::ListFiles("/shards/*.tar").Interleave([](Expr file) {
               return Dataset::TarShards(file, {"note.txt"}, {.skip_incomplete = true});
             });
           }},
      {.name = "TokenShards",
       .kinds = {"TokenShards"},
       .make =
           [] {
             return Dataset::TokenShards(
                 {"/shards/tokens.bin", "/shards/tokens.npy", "/shards/tokens.bin"}, 5,
                 {.stride = 2, .with_next_token = true});
           }},
      {.name = "TokenShardsWithShortWindows",
       .kinds = {"TokenShards"},
       .make =
           [] {
             return Dataset::TokenShards(
                 {"/shards/headed_tokens.bin", "/shards/headed_tokens.bin"}, 5,
                 {.dtype = kInt32, .drop_remainder = false, .header_bytes = 16});
           }},
      {.name = "TokenShardsOfNothing",
       .kinds = {"TokenShards"},
       .make = [] { return Dataset::TokenShards("/shards/tokens.bin", 51); }},
      {.name = "TokenShardsBatched",
       .kinds = {"TokenShards"},
       .make = [] { return Dataset::TokenShards("/shards/tokens.bin", 4).Batch(3); },
       .parts = Rows},
      {.name = "TokenShardsOf",
       .kinds = {"TokenShardsOf"},
       .make =
           [] {
             return Dataset::ListFiles("/shards/tokens.*").Interleave([](Expr file) {
               return Dataset::TokenShards(file, 8, {.stride = 7});
             });
           }},
      {.name = "NpyDataset",
       .kinds = {"NpyDataset"},
       .make =
           [] {
             return Dataset::Npy({"/shards/rows.npy", "/shards/more_rows.npy"},
                                 Dense(kFloat32, {2, 3}));
           }},
      {.name = "NpyDatasetOfRowsOfAnyLength",
       .kinds = {"NpyDataset"},
       .make =
           [] {
             return Dataset::Npy({"/shards/more_rows.npy", "/shards/rows.npy"},
                                 Dense(kFloat32, Shape({kUnknownDim, 3})));
           }},
      {.name = "NpyDatasetOfMembers", .kinds = {"NpyDataset"}, .make = Pairs},
      {.name = "NpyDatasetOfMembersBatched",
       .kinds = {"NpyDataset"},
       .make = [] { return Pairs().Batch(2); },
       .parts = Rows},
      {.name = "NpyDatasetOfWholeFiles",
       .kinds = {"NpyDataset"},
       .make =
           [] {
             return Dataset::Npy({"/shards/volume.npz", "/shards/missing", "/shards/volume.npz.cut",
                                  "/shards/pair.npz", "/shards/volume.npz"},
                                 Spec::Dict({{"x", Dense(kInt16, Shape({kUnknownDim, 3, 4}))},
                                             {"y", Dense(kUInt8, {2})}}),
                                 {.rows = false});
           }},
      {.name = "NpyDatasetOf",
       .kinds = {"NpyDatasetOf"},
       .make =
           [] {
             return Dataset::ListFiles("/shards/*rows.npy").FlatMap([](Expr file) {
               return Dataset::Npy(file, Dense(kFloat32, {2, 3}));
             });
           }},
      {.name = "ImageDirectory",
       .kinds = {"ImageDirectory"},
       .make = [] { return Dataset::ImageDirectory("/images"); }},
      {.name = "ImageDirectoryShuffled",
       .kinds = {"ImageDirectory"},
       .make = [] { return Dataset::ImageDirectory("/images/", {.shuffle = true}); }},
  };
  if (FindNodeKind("Parquet") != nullptr)
    for (Case& c : ParquetCases()) cases.push_back(std::move(c));
  return cases;
}

}  // namespace penstock::suite
