// SPDX-License-Identifier: Apache-2.0
// Reads JPEG files through decode, crop and batch, and writes the results as one
// picture: a sheet of thumbnails, with a red one for each file that could not be read.
//
//   photos_contact_sheet FOLDER sheet.jpg      FOLDER: written by make_variants.py
// clang-format off
#include <cstdio>  // jpeglib.h needs it
#include <jpeglib.h>
// clang-format on

#include <cerrno>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "penstock/penstock.h"

namespace photos {
namespace {

namespace ps = penstock;

constexpr int kThumb = 64;  // pixels, square
constexpr int kColumns = 20;

// The sheet: thumbnails row by row, RGB.
class Sheet {
 public:
  void Add(const uint8_t* thumb) {
    const int column = count_ % kColumns;
    if (column == 0) pixels_.resize(pixels_.size() + kThumb * kStride, 255);
    uint8_t* corner = &pixels_[(count_ / kColumns) * kThumb * kStride + column * kThumb * 3];
    for (int y = 0; y < kThumb; ++y)
      std::memcpy(corner + y * kStride, thumb + y * kThumb * 3, kThumb * 3);
    ++count_;
  }
  void AddMissing() {
    std::vector<uint8_t> red(kThumb * kThumb * 3, 0);
    for (size_t i = 0; i < red.size(); i += 3) red[i] = 200;
    Add(red.data());
  }
  int count() const { return count_; }

  absl::Status Write(const std::string& path) const {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
    jpeg_compress_struct out;
    jpeg_error_mgr errors;
    out.err = jpeg_std_error(&errors);
    jpeg_create_compress(&out);
    jpeg_stdio_dest(&out, file);
    out.image_width = kStride / 3;
    out.image_height = pixels_.size() / kStride;
    out.input_components = 3;
    out.in_color_space = JCS_RGB;
    jpeg_set_defaults(&out);
    jpeg_start_compress(&out, TRUE);
    while (out.next_scanline < out.image_height) {
      auto* row = const_cast<JSAMPROW>(&pixels_[out.next_scanline * kStride]);
      jpeg_write_scanlines(&out, &row, 1);
    }
    jpeg_finish_compress(&out);
    jpeg_destroy_compress(&out);
    return std::fclose(file) == 0 ? absl::OkStatus() : absl::ErrnoToStatus(errno, path);
  }

 private:
  static constexpr size_t kStride = kColumns * kThumb * 3;
  std::vector<uint8_t> pixels_;
  int count_ = 0;
};

// Thumbnails of the files that match, read through decode, crop and resize.
ps::Dataset Thumbs(const std::string& pattern) {
  return ps::Dataset::ListFiles(pattern)
      .Map([](auto file) { return ps::ReadFile(file); })
      .Map(ps::DecodeJpeg("").CenterCrop(150, 150).Resize(kThumb, kThumb));
}

// Reads whole files in batches of one row of the sheet.
absl::Status AddRows(const std::string& pattern, Sheet& sheet) {
  PENSTOCK_ASSIGN_OR_RETURN(ps::Iterator it, Thumbs(pattern).Batch(kColumns).MakeIterator());
  while (true) {
    PENSTOCK_ASSIGN_OR_RETURN(std::optional<ps::Element> batch, it.Next());
    if (!batch) return absl::OkStatus();
    const ps::Tensor rows = batch->tensor(0);
    for (int64_t i = 0; i < rows.dim(0); ++i)
      sheet.Add(rows.data<uint8_t>().data() + i * kThumb * kThumb * 3);
  }
}

// Reads damaged files one by one. Each error takes the place of its image, and reading continues
// after it.
absl::StatusOr<int> AddDamaged(const std::string& pattern, Sheet& sheet) {
  PENSTOCK_ASSIGN_OR_RETURN(ps::Iterator it, Thumbs(pattern).MakeIterator());
  int unreadable = 0;
  while (true) {
    absl::StatusOr<std::optional<ps::Element>> thumb = it.Next();
    if (thumb.ok() && !thumb->has_value()) return unreadable;
    if (thumb.ok()) {
      sheet.Add((*thumb)->tensor(0).data<uint8_t>().data());
    } else {
      if (unreadable++ == 0) std::cerr << "for example: " << thumb.status() << '\n';
      sheet.AddMissing();
    }
  }
}

absl::Status Run(const std::string& folder, const std::string& path) {
  Sheet sheet;
  for (const char* kind : {"420", "444", "progressive", "grey", "cmyk", "rotated"})
    PENSTOCK_RETURN_IF_ERROR(AddRows(absl::StrCat(folder, "/*-", kind, ".jpg"), sheet));
  PENSTOCK_ASSIGN_OR_RETURN(const int unreadable, AddDamaged(folder + "/*-truncated.jpg", sheet));
  PENSTOCK_RETURN_IF_ERROR(sheet.Write(path));
  std::printf("photos: %d images, %d unreadable, %s\n", sheet.count(), unreadable, path.c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace photos

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: photos_contact_sheet FOLDER SHEET.jpg\n";
    return 2;
  }
  if (absl::Status status = photos::Run(argv[1], argv[2]); !status.ok()) {
    std::cerr << "photos_contact_sheet: " << status << '\n';
    return 1;
  }
  return 0;
}
