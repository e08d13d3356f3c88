// SPDX-License-Identifier: Apache-2.0
// libpng reports errors by a call that must not return. A function that calls setjmp() to get
// control back holds no object with a destructor from then on. All memory of libpng is the arena's,
// so a jump leaks nothing.
#include "dataplane/dataset/image/png_decoder.h"

#include <png.h>

#include <bit>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/image/pixels.h"
#include "penstock/status.h"

namespace penstock {
namespace {

constexpr std::string_view kSignature("\x89PNG\r\n\x1A\n", 8);

// Converts RGB pixels (with or without alpha) to grey ones, in place.
template <class T>
void ToGrey(T* values, int64_t pixels, bool alpha) {
  const T* in = values;
  T* out = values;
  for (int64_t n = 0; n < pixels; ++n, in += alpha ? 4 : 3) {
    const T luma = Luma(in[0], in[1], in[2]);
    *out++ = luma;
    if (alpha) *out++ = in[3];
  }
}

}  // namespace

struct PngDecoder::Impl {
  png_structp png = nullptr;
  png_infop info = nullptr;
  Arena* arena = nullptr;
  std::string_view left;  // bytes not yet read
  jmp_buf jump;
  char message[128];
  ImageSize size;
  int channels = 3;
  size_t value_bytes = 1;
  bool to_grey = false;   // libpng returns RGB, grey was requested
  int read_channels = 3;  // as libpng returns them
  bool interlaced = false;
};

PngDecoder::PngDecoder() : impl_(std::make_unique<Impl>()) {}
PngDecoder::~PngDecoder() = default;

PngDecoder& PngDecoder::OfThisThread() {
  thread_local PngDecoder decoder;
  return decoder;
}

bool PngDecoder::IsPng(std::string_view bytes) {
  return bytes.starts_with(kSignature);
}

absl::Status PngDecoder::Failure() const {
  return absl::DataLossError(absl::StrCat("damaged PNG image: ", impl_->message));
}

// Creates libpng's state and reads up to the pixels. False on failure.
bool PngDecoder::Begin() {
  Impl& impl = *impl_;
  if (setjmp(impl.jump) != 0) return false;
  impl.png = png_create_read_struct_2(
      PNG_LIBPNG_VER_STRING, &impl,
      [](png_structp png, png_const_charp message) {
        Impl& impl = *static_cast<Impl*>(png_get_error_ptr(png));
        std::snprintf(impl.message, sizeof impl.message, "%s", message);
        longjmp(impl.jump, 1);
      },
      [](png_structp, png_const_charp) {}, &impl,
      [](png_structp png, png_alloc_size_t bytes) -> png_voidp {
        return static_cast<Impl*>(png_get_mem_ptr(png))->arena->Allocate(bytes);
      },
      [](png_structp, png_voidp) {});
  if (impl.png == nullptr) return false;
  impl.info = png_create_info_struct(impl.png);
  // Chunks that do not describe the pixels are skipped, except EXIF.
  png_set_keep_unknown_chunks(impl.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_keep_unknown_chunks(impl.png, PNG_HANDLE_CHUNK_AS_DEFAULT,
                              reinterpret_cast<png_const_bytep>("eXIf"), 1);
  png_set_read_fn(impl.png, &impl, [](png_structp png, png_bytep out, size_t bytes) {
    std::string_view& left = static_cast<Impl*>(png_get_io_ptr(png))->left;
    if (bytes > left.size()) png_error(png, "the file was cut short");
    std::memcpy(out, left.data(), bytes);
    left.remove_prefix(bytes);
  });
  png_read_info(impl.png, impl.info);
  return true;
}

absl::StatusOr<ImageSize> PngDecoder::Open(std::string_view bytes, int channels, DType dtype,
                                           Arena& arena) {
  Impl& impl = *impl_;
  if (!IsPng(bytes))
    return absl::InvalidArgumentError("not a PNG image: its first bytes do not match");
  impl.arena = &arena;
  impl.left = bytes;
  impl.channels = channels;
  impl.value_bytes = SizeOf(dtype);
  std::snprintf(impl.message, sizeof impl.message,
                "libpng has a different version from its headers");
  if (!Begin()) return Failure();
  impl.size = {.height = png_get_image_height(impl.png, impl.info),
               .width = png_get_image_width(impl.png, impl.info)};
  if (impl.size.height * impl.size.width > kMaxPixels) {
    return absl::InvalidArgumentError(absl::StrCat("a PNG image of ", impl.size.width, " x ",
                                                   impl.size.height, " pixels is too large"));
  }
  // As for JPEG: reading a region may never reach the place where the file was cut.
  if (bytes.rfind("IEND") == std::string_view::npos)
    return absl::DataLossError("damaged PNG image: it has no end marker; the file was cut short");
  return impl.size;
}

Turn PngDecoder::turn() const {
  png_uint_32 bytes = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(impl_->png, impl_->info, &bytes, &exif) == 0) return {};
  return TurnOfExif({reinterpret_cast<const char*>(exif), bytes});
}

// Reads the rows of the region, or of the whole image if it is interlaced, to `out` without gaps,
// in the channels that libpng returns. False on failure.
bool PngDecoder::ReadRows(const Region& region, uint8_t* out) {
  Impl& impl = *impl_;
  if (setjmp(impl.jump) != 0) return false;
  const bool from_colour =
      (png_get_color_type(impl.png, impl.info) & PNG_COLOR_MASK_COLOR) != 0;  // including palettes
  const bool wants_alpha = impl.channels % 2 == 0;
  png_set_expand(impl.png);
  if (impl.value_bytes == 1) {
    png_set_strip_16(impl.png);
  } else {
    png_set_expand_16(impl.png);
    if (std::endian::native == std::endian::little) png_set_swap(impl.png);
  }
  if (!from_colour && impl.channels >= 3) png_set_gray_to_rgb(impl.png);
  if (wants_alpha)
    png_set_add_alpha(impl.png, 0xFFFF, PNG_FILLER_AFTER);
  else
    png_set_strip_alpha(impl.png);
  const int passes = png_set_interlace_handling(impl.png);
  png_read_update_info(impl.png, impl.info);
  if (png_get_rowbytes(impl.png, impl.info) !=
      static_cast<size_t>(impl.size.width) * impl.read_channels * impl.value_bytes)
    png_error(impl.png, "the rows have a different length from their header");
  const int64_t pixel = static_cast<int64_t>(impl.read_channels * impl.value_bytes);
  if (passes > 1) {
    for (int pass = 0; pass < passes; ++pass)
      for (int64_t y = 0; y < impl.size.height; ++y)
        png_read_row(impl.png, out + y * impl.size.width * pixel, nullptr);
    return true;
  }
  auto* row = reinterpret_cast<uint8_t*>(impl.arena->Allocate(impl.size.width * pixel));
  for (int64_t y = 0; y < region.y; ++y) png_read_row(impl.png, row, nullptr);
  for (int64_t y = 0; y < region.height; ++y) {
    png_read_row(impl.png, row, nullptr);
    std::memcpy(out + y * region.width * pixel, row + region.x * pixel, region.width * pixel);
  }
  return true;
}

absl::StatusOr<Pixels> PngDecoder::Read(const Region& region) {
  Impl& impl = *impl_;
  const bool from_colour = (png_get_color_type(impl.png, impl.info) & PNG_COLOR_MASK_COLOR) != 0;
  impl.to_grey = from_colour && impl.channels < 3;
  impl.read_channels = impl.channels + (impl.to_grey ? 2 : 0);
  impl.interlaced = png_get_interlace_type(impl.png, impl.info) != PNG_INTERLACE_NONE;
  const int64_t height = impl.interlaced ? impl.size.height : region.height;
  const int64_t width = impl.interlaced ? impl.size.width : region.width;
  const auto value_bytes = static_cast<int64_t>(impl.value_bytes);
  const int64_t bytes = height * width * impl.read_channels * value_bytes;
  auto* out = reinterpret_cast<uint8_t*>(impl.arena->Allocate(bytes));
  if (!ReadRows(region, out)) return Failure();
  if (impl.to_grey) {
    if (value_bytes == 1)
      ToGrey(out, height * width, impl.channels == 2);
    else
      ToGrey(reinterpret_cast<uint16_t*>(out), height * width, impl.channels == 2);
  }
  const int64_t row_bytes = width * impl.channels * value_bytes;
  if (impl.interlaced) out += region.y * row_bytes + region.x * impl.channels * value_bytes;
  return Pixels{out, row_bytes};
}

}  // namespace penstock
