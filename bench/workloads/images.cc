// SPDX-License-Identifier: Apache-2.0
#include "bench/workloads/images.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/workloads/files.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

// Reads the pixels of batches. Subclasses check the numbers.
class PixelReader : public Reader {
 public:
  explicit PixelReader(int64_t batch) : batch_(batch) {}

  absl::StatusOr<int64_t> Take(const Element& element) override {
    RETURN_IF_ERROR(CheckNumbers(element));
    const absl::Span<const uint8_t> pixels = element.tensor(1).data<uint8_t>();
    sum_ += SumOf({reinterpret_cast<const std::byte*>(pixels.data()), pixels.size()},
                  Touch::kEveryPage);
    const auto bytes = static_cast<int64_t>(pixels.size());
    if (bytes != batch_ * kImageBytes) {
      return absl::DataLossError(absl::StrCat("a batch has ", bytes, " bytes of images"));
    }
    return bytes;
  }

 private:
  virtual absl::Status CheckNumbers(const Element& element) = 0;

  const int64_t batch_;
  uint64_t sum_ = 0;
};

// Expects numbers in order. With its own job, the reader gets all batches of each worker; otherwise
// the first number follows from the batch's index.
class BatchReader final : public PixelReader {
 public:
  BatchReader(int64_t batch, bool alone) : PixelReader(batch), batch_(batch), alone_(alone) {}

 private:
  absl::Status CheckNumbers(const Element& element) override {
    const Identity identity = element.identity();
    int64_t& due = due_[identity.partition];
    if (!alone_) due = identity.index * batch_;
    for (int64_t number : element.tensor(0).data<int64_t>()) {
      if (number != due) {
        return absl::DataLossError(absl::StrCat("image ", number, " came instead of ", due));
      }
      ++due;
    }
    return absl::OkStatus();
  }

  const int64_t batch_;
  const bool alone_;
  std::map<PartitionId, int64_t> due_;
};

// Expects every number once, and as near to its place as the buffer allows.
class ShuffledReader final : public PixelReader {
 public:
  ShuffledReader(int64_t batch, int64_t buffer) : PixelReader(batch), buffer_(buffer) {}

 private:
  absl::Status CheckNumbers(const Element& element) override {
    for (int64_t number : element.tensor(0).data<int64_t>()) {
      // A number cannot leave the buffer before it has entered it.
      if (number < first_missing_ || number >= taken_ + buffer_ || !ahead_.insert(number).second) {
        return absl::DataLossError(absl::StrCat("image ", number, " came twice or too early"));
      }
      ++taken_;
      while (ahead_.erase(first_missing_) > 0) ++first_missing_;
    }
    return absl::OkStatus();
  }

  const int64_t buffer_;
  int64_t taken_ = 0, first_missing_ = 0;
  std::set<int64_t> ahead_;  // received numbers above first_missing_
};

}  // namespace

absl::Status WriteImages(const std::string& folder, const ImageSize& size) {
  const std::vector<std::string> images = MakeImages(kFiles, size);
  for (size_t i = 0; i < images.size(); ++i) {
    const std::string name = absl::StrFormat("%s/%02d.jpg", folder, i);
    RETURN_IF_ERROR(WriteFile(name, {images[i]}));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ReadImages(const std::string& folder) {
  std::vector<std::string> names, images;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".jpg") names.push_back(entry.path());
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    std::ifstream file(name, std::ios::binary);
    images.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (images.empty()) return absl::NotFoundError(absl::StrCat("no images in ", folder));
  return images;
}

Dataset ImageBatches(const std::string& folder, int64_t batch, const MapFunction& prepare,
                     int64_t shuffle_buffer) {
  const Dataset names = Dataset::ListFiles(folder + "/*.jpg").Repeat().Enumerate();
  return (shuffle_buffer > 0 ? names.Shuffle(shuffle_buffer) : names)
      .Map([prepare](const Expr& x) {
        return Tuple({x[0], prepare(x)});
      })
      .Batch(batch, {.drop_remainder = true});
}

std::unique_ptr<Reader> MakeBatchReader(int64_t batch, bool alone) {
  return std::make_unique<BatchReader>(batch, alone);
}

std::unique_ptr<Reader> MakeShuffledReader(int64_t batch, int64_t shuffle_buffer) {
  return std::make_unique<ShuffledReader>(batch, shuffle_buffer);
}

}  // namespace penstock::bench
