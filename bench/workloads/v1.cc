// SPDX-License-Identifier: Apache-2.0
// V1: 3D U-Net of MLPerf Storage, with all sizes divided by 16. The .npz files, of 9,162,539 bytes
// on average, have an image of float32 and a mask of uint8. A random region of 32 × 64 × 64 is
// taken from both, in batches of 7 for a trainer that computes 0.323 s / 16 on each, a sixteenth of
// an H100's time for full sizes. The limit is one core with libzip, which also checks the data, at
// most as fast as such a trainer.
#include <zip.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/limits/limits.h"
#include "bench/limits/slot_limit.h"
#include "bench/workload.h"
#include "bench/workloads/files.h"
#include "include/status_macros.h"
#include "penstock/register.h"
#include "penstock/sources.h"

namespace penstock::bench {
namespace {

constexpr int64_t kCropBatch = 7;
constexpr double kCropStep = 0.323 / 16;  // seconds
constexpr int64_t kRows = 112, kColumns = 112;
constexpr int64_t kPlane = kRows * kColumns;  // voxels
constexpr std::array<int64_t, 3> kCrop = {32, 64, 64};
constexpr int64_t kCropVoxels = kCrop[0] * kCrop[1] * kCrop[2];
constexpr int64_t kVoxelBytes = 5;  // float32 and uint8
constexpr int64_t kCropBatchBytes = kCropBatch * kCropVoxels * kVoxelBytes;

constexpr double kMeanBytes = 9'162'539, kDeviation = 4'271'363;
// Standard normal deviates at the middles of sixteen equally likely parts, unordered.
constexpr std::array<double, 16> kDeviates = {-0.08, 1.32,  -0.78, 0.40,  -1.86, 0.99,
                                              0.24,  -0.40, 1.86,  -0.58, 0.78,  -1.32,
                                              0.08,  -0.99, 0.58,  -0.24};

int64_t PlanesOf(int64_t number) {
  const double bytes = kMeanBytes + kDeviation * kDeviates[number % kDeviates.size()];
  return std::max<int64_t>(kCrop[0], std::llround(bytes / kVoxelBytes / kPlane));
}

// Returns the number of records that together are as large as a cold source.
int64_t ScanCount(const Setup& setup) {
  return std::max<int64_t>(2, setup.source_bytes / static_cast<int64_t>(kMeanBytes));
}

std::string ScanFile(const std::string& folder, int64_t number) {
  return absl::StrFormat("%s/%05d.npz", folder, number);
}

// A voxel's value is its index in its image, which a float holds exactly.
uint8_t MaskOf(int64_t number, int64_t voxel) {
  return static_cast<uint8_t>(number * 31 + voxel);
}

struct Corner {
  int64_t z, y, x;
};

Corner CornerOf(int64_t planes, uint64_t random) {
  return {.z = static_cast<int64_t>(random % (planes - kCrop[0] + 1)),
          .y = static_cast<int64_t>((random >> 16) % (kRows - kCrop[1] + 1)),
          .x = static_cast<int64_t>((random >> 32) % (kColumns - kCrop[2] + 1))};
}

template <class T>
void CopyCrop(const T* from, const Corner& corner, T* to) {
  for (int64_t z = 0; z < kCrop[0]; ++z) {
    for (int64_t y = 0; y < kCrop[1]; ++y, to += kCrop[2]) {
      const int64_t voxel = (corner.z + z) * kPlane + (corner.y + y) * kColumns + corner.x;
      std::memcpy(to, from + voxel, kCrop[2] * sizeof(T));
    }
  }
}

Spec CropSpec() {
  const penstock::Shape shape({kCrop[0], kCrop[1], kCrop[2]});
  return Spec::Tuple({Dense(kFloat32, shape), Dense(kUInt8, shape)});
}

// Maps (image, mask) to the same region of both.
absl::Status RandomCrop(CallContext& call) {
  const Corner corner = CornerOf(call.inputs()[0].dim(0), call.Random(0));
  ASSIGN_OR_RETURN(const absl::Span<float> image, call.OutputAs<float>(0, kCrop));
  ASSIGN_OR_RETURN(const absl::Span<uint8_t> mask, call.OutputAs<uint8_t>(1, kCrop));
  CopyCrop(call.inputs()[0].data<float>().data(), corner, image.data());
  CopyCrop(call.inputs()[1].data<uint8_t>().data(), corner, mask.data());
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("bench.random_crop", 1, CropSpec(), RandomCrop);

// Checks that this is a region of record `number`. Reads every voxel.
absl::Status CheckCrop(const float* image, const uint8_t* mask, int64_t number) {
  const auto first = static_cast<int64_t>(image[0]);
  int wrong = 0;
  for (int64_t z = 0; z < kCrop[0]; ++z) {
    for (int64_t y = 0; y < kCrop[1]; ++y, image += kCrop[2], mask += kCrop[2]) {
      const auto row = static_cast<int32_t>(first + z * kPlane + y * kColumns);
      const uint8_t label = MaskOf(number, row);
      for (int32_t x = 0; x < kCrop[2]; ++x) {
        wrong |= image[x] != static_cast<float>(row + x) ? 1 : 0;
        wrong |= mask[x] ^ static_cast<uint8_t>(label + x);
      }
    }
  }
  if (wrong == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("expected a region of record ", number));
}

class CropReader final : public Reader {
 public:
  explicit CropReader(int64_t count) : count_(count) {}

  absl::StatusOr<int64_t> Take(const Element& element) override {
    const absl::Span<const float> images = element.tensor(0).data<float>();
    const absl::Span<const uint8_t> masks = element.tensor(1).data<uint8_t>();
    if (static_cast<int64_t>(masks.size()) != kCropBatch * kCropVoxels) {
      return absl::DataLossError(absl::StrCat("a batch has ", masks.size(), " voxels"));
    }
    int64_t& due = due_[element.identity().partition];
    for (int64_t i = 0; i < kCropBatch; ++i, due = (due + 1) % count_) {
      RETURN_IF_ERROR(
          CheckCrop(images.data() + i * kCropVoxels, masks.data() + i * kCropVoxels, due));
    }
    return kCropBatchBytes;
  }

 private:
  const int64_t count_;
  std::map<PartitionId, int64_t> due_;
};

struct DiscardZip {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};

// Writes it as numpy.savez does: uncompressed.
absl::Status WriteRecord(const std::string& name, int64_t number) {
  const int64_t planes = PlanesOf(number), voxels = planes * kPlane;
  std::string image = NpyHeader("<f4", {planes, kRows, kColumns}),
              mask = NpyHeader("|u1", {planes, kRows, kColumns});
  image.resize(kNpyHeaderBytes + voxels * sizeof(float));
  mask.resize(kNpyHeaderBytes + voxels);
  auto* values = reinterpret_cast<float*>(image.data() + kNpyHeaderBytes);
  for (int64_t voxel = 0; voxel < voxels; ++voxel) {
    values[voxel] = static_cast<float>(voxel);
    mask[kNpyHeaderBytes + voxel] = static_cast<char>(MaskOf(number, voxel));
  }
  int error = 0;
  std::unique_ptr<zip_t, DiscardZip> archive(
      zip_open(name.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &error));
  bool written = archive != nullptr;
  for (const auto& [member, bytes] : {std::pair{"image.npy", &image}, {"mask.npy", &mask}}) {
    if (!written) break;
    zip_source_t* const source = zip_source_buffer(archive.get(), bytes->data(), bytes->size(), 0);
    const zip_int64_t index = zip_file_add(archive.get(), member, source, ZIP_FL_OVERWRITE);
    written = index >= 0 && zip_set_file_compression(archive.get(), index, ZIP_CM_STORE, 0) == 0;
  }
  if (written && zip_close(archive.get()) == 0) {
    static_cast<void>(archive.release());  // zip_close() freed it
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat("cannot write ", name));
}

class CropWork {
 public:
  CropWork(std::string folder, int64_t count) : folder_(std::move(folder)), count_(count) {}

  absl::Status Fill(std::span<std::byte> slot, uint64_t number) {
    auto* image = reinterpret_cast<float*>(slot.data());
    auto* mask = reinterpret_cast<uint8_t*>(image + kCropBatch * kCropVoxels);
    for (int64_t i = 0; i < kCropBatch; ++i, image += kCropVoxels, mask += kCropVoxels) {
      const int64_t record = (static_cast<int64_t>(number) * kCropBatch + i) % count_;
      RETURN_IF_ERROR(ReadRecord(record));
      random_ = random_ * 6364136223846793005u + 1442695040888963407u;
      const Corner corner = CornerOf(PlanesOf(record), random_ >> 12);
      CopyCrop(reinterpret_cast<const float*>(image_.data() + kNpyHeaderBytes), corner, image);
      CopyCrop(mask_.data() + kNpyHeaderBytes, corner, mask);
    }
    return absl::OkStatus();
  }
  absl::Status Take(std::span<const std::byte> slot, uint64_t number) {
    const auto* image = reinterpret_cast<const float*>(slot.data());
    const auto* mask = reinterpret_cast<const uint8_t*>(image + kCropBatch * kCropVoxels);
    for (int64_t i = 0; i < kCropBatch; ++i) {
      RETURN_IF_ERROR(CheckCrop(image + i * kCropVoxels, mask + i * kCropVoxels,
                                (static_cast<int64_t>(number) * kCropBatch + i) % count_));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ReadRecord(int64_t number) {
    const std::string name = ScanFile(folder_, number);
    const std::unique_ptr<zip_t, DiscardZip> archive(zip_open(name.c_str(), ZIP_RDONLY, nullptr));
    const int64_t voxels = PlanesOf(number) * kPlane;
    if (archive != nullptr && ReadMember(*archive, "image.npy", voxels * 4, image_) &&
        ReadMember(*archive, "mask.npy", voxels, mask_)) {
      return absl::OkStatus();
    }
    return absl::DataLossError(absl::StrCat("cannot read ", name));
  }
  static bool ReadMember(zip_t& archive, const char* member, int64_t bytes,
                         std::vector<uint8_t>& into) {
    into.resize(kNpyHeaderBytes + bytes);
    zip_file_t* const file = zip_fopen(&archive, member, 0);
    if (file == nullptr) return false;
    size_t at = 0;
    for (zip_int64_t got = 1; got > 0 && at < into.size(); at += got) {
      got = zip_fread(file, into.data() + at, into.size() - at);
      if (got < 0) break;
    }
    uint8_t behind = 0;
    const bool whole = at == into.size() && zip_fread(file, &behind, 1) == 0;  // checks the CRC
    return zip_fclose(file) == 0 && whole;
  }

  std::string folder_;
  int64_t count_;
  uint64_t random_ = 1;
  std::vector<uint8_t> image_, mask_;
};

class Crops final : public Workload {
 public:
  std::string_view name() const override { return "V1"; }
  std::string_view question() const override {
    return "regions of 7 volumes of 9.2 MB for a trainer that computes 20 ms on them";
  }
  std::vector<int64_t> sizes() const override { return {kCropBatchBytes}; }
  bool sized() const override { return false; }
  double step_s() const override { return kCropStep; }

  bool has_files() const override { return true; }
  absl::Status Prepare(const Setup& setup) const override {
    for (int64_t number = 0; number < ScanCount(setup); ++number) {
      RETURN_IF_ERROR(WriteRecord(ScanFile(setup.scratch, number), number));
    }
    return absl::OkStatus();
  }
  Dataset MakeDataset(const Setup& setup) const override {
    std::vector<std::string> files;
    for (int64_t number = 0; number < ScanCount(setup); ++number) {
      files.push_back(ScanFile(setup.scratch, number));
    }
    const penstock::Shape shape({kUnknownDim, kRows, kColumns});
    const Spec spec =
        Spec::Dict({{"image", Dense(kFloat32, shape)}, {"mask", Dense(kUInt8, shape)}});
    return Dataset::Npy(files, spec, {.rows = false})
        .Repeat()
        .Map([](const Expr& x) {
          return Call("bench.random_crop", Tuple({x["image"], x["mask"]}));
        })
        .Batch(kCropBatch, {.drop_remainder = true});
  }
  std::unique_ptr<Reader> MakeReader(const Setup& setup) const override {
    return std::make_unique<CropReader>(ScanCount(setup));
  }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    return MakePacedLimit(
        std::make_unique<SlotLimit<CropWork>>("libzip loop", kCropBatchBytes,
                                              CropWork(setup.scratch, ScanCount(setup))),
        1 / kCropStep);
  }
};

}  // namespace

const Workload& V1() {
  static const Crops& v1 = *new Crops;
  return v1;
}

}  // namespace penstock::bench
