// SPDX-License-Identifier: Apache-2.0
#include "bench/workloads/images.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/jpeg.h"

namespace penstock::bench {
namespace {

class BatchReader final : public Reader {
 public:
  explicit BatchReader(int64_t batch) : batch_(batch) {}

  absl::StatusOr<int64_t> Take(const Element& element) override {
    int64_t& due = due_[element.identity().partition];
    for (int64_t number : element.tensor(0).data<int64_t>()) {
      if (number != due) {
        return absl::DataLossError(absl::StrCat("image ", number, " came where ", due, " was due"));
      }
      ++due;
    }
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
  const int64_t batch_;
  std::map<PartitionId, int64_t> due_;
  uint64_t sum_ = 0;
};

}  // namespace

absl::Status WriteImages(const std::string& folder) {
  const std::vector<std::string> images = MakeImages(kFiles);
  for (size_t i = 0; i < images.size(); ++i) {
    const std::string name = absl::StrFormat("%s/%02d.jpg", folder, i);
    std::ofstream file(name, std::ios::binary);
    file << images[i];
    file.close();
    if (!file) return absl::ResourceExhaustedError(absl::StrCat("cannot write ", name));
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

Dataset ImageBatches(const std::string& folder, int64_t batch, const MapFunction& prepare) {
  return Dataset::ListFiles(folder + "/*.jpg")
      .Repeat()
      .Enumerate()
      .Map([prepare](const Expr& x) {
        return Tuple({x[0], prepare(x)});
      })
      .Batch(batch, {.drop_remainder = true});
}

std::unique_ptr<Reader> MakeBatchReader(int64_t batch) {
  return std::make_unique<BatchReader>(batch);
}

}  // namespace penstock::bench
