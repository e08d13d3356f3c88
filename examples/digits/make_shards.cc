// SPDX-License-Identifier: Apache-2.0
// Writes digits.csv as TFRecord shards of tf.train.Example {image: 64 bytes,
// label: int64, number: int64}: every sixth row into held-out-00.tfrecord, and
// the other rows into train-KK.tfrecord.
#include <charconv>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "dataplane/dataset/sources/formats/tfrecord_writer.h"
#include "penstock/status.h"

namespace digits {
namespace {

constexpr int kHeldOutEvery = 6;

// --- tf.train.Example by hand: nested length-delimited fields ---------------

void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

std::string Field(int number, std::string_view bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  AppendVarint(out, bytes.size());
  return out.append(bytes);
}

std::string BytesFeature(std::string_view name, std::string_view value) {
  return Field(1, Field(1, name) + Field(2, Field(1, Field(1, value))));
}

std::string IntFeature(std::string_view name, int64_t value) {
  std::string packed;
  AppendVarint(packed, static_cast<uint64_t>(value));
  return Field(1, Field(1, name) + Field(2, Field(3, Field(1, packed))));
}

// Returns the example of one line of digits.csv: 64 pixels and the label.
absl::StatusOr<std::string> ExampleOf(std::string_view line, int64_t number) {
  std::string pixels;
  int value = 0;
  for (absl::string_view cell : absl::StrSplit(absl::string_view(line.data(), line.size()), ',')) {
    if (std::from_chars(cell.data(), cell.data() + cell.size(), value).ec != std::errc() ||
        value < 0 || value > 16)
      return absl::InvalidArgumentError(absl::StrCat("row ", number, " has \"", std::string(cell),
                                                     "\", not a number of 0 to 16"));
    pixels += static_cast<char>(value);
  }
  if (pixels.size() != 65)
    return absl::InvalidArgumentError(
        absl::StrCat("row ", number, " has ", pixels.size(), " cells, not 65"));
  const auto label = static_cast<unsigned char>(pixels.back());
  pixels.pop_back();
  return Field(
      1, BytesFeature("image", pixels) + IntFeature("label", label) + IntFeature("number", number));
}

absl::Status Run(const std::string& csv, const std::string& folder, int shards) {
  std::vector<std::unique_ptr<penstock::TFRecordWriter>> train;
  for (int i = 0; i < shards; ++i) {
    PENSTOCK_ASSIGN_OR_RETURN(auto writer, penstock::TFRecordWriter::Create(absl::StrFormat(
                                               "%s/train-%02d.tfrecord", folder, i)));
    train.push_back(std::move(writer));
  }
  PENSTOCK_ASSIGN_OR_RETURN(auto held_out,
                            penstock::TFRecordWriter::Create(folder + "/held-out-00.tfrecord"));

  std::ifstream in(csv);
  if (!in) return absl::NotFoundError(absl::StrCat("cannot open ", csv));
  std::string line;
  for (int64_t number = 0; std::getline(in, line); ++number) {
    PENSTOCK_ASSIGN_OR_RETURN(std::string example, ExampleOf(line, number));
    auto& writer = number % kHeldOutEvery == 0 ? held_out : train[number % shards];
    PENSTOCK_RETURN_IF_ERROR(writer->Write(example));
  }
  for (auto& writer : train) PENSTOCK_RETURN_IF_ERROR(writer->Finish());
  return held_out->Finish();
}

}  // namespace
}  // namespace digits

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: digits_make_shards digits.csv FOLDER SHARDS\n";
    return 2;
  }
  if (absl::Status status = digits::Run(argv[1], argv[2], std::max(1, std::atoi(argv[3])));
      !status.ok()) {
    std::cerr << "digits_make_shards: " << status << '\n';
    return 1;
  }
  return 0;
}
