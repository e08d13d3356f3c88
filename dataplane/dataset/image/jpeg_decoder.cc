// SPDX-License-Identifier: Apache-2.0
// libjpeg reports errors by a call that must not return. Every entry point therefore calls setjmp()
// to get control back, and from then on holds no object with a destructor.
#include "dataplane/dataset/image/jpeg_decoder.h"

#include <csetjmp>
#include <cstdio>
// jpeglib.h needs size_t and FILE first.
#include <jpeglib.h>
// jerror.h needs jpeglib.h first.
#include <jerror.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/image/pixels.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock {

struct JpegErrorManager {
  jpeg_error_mgr base;
  jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
  bool failed;
};

namespace {

// A progressive image with more scans than this is treated as an attempt to waste the decoder's
// time.
constexpr int kMaxScans = 500;

// True for libjpeg warnings that mean the decoded pixels are wrong because the file is damaged.
bool MeansDamage(int code) {
  switch (code) {
    case JWRN_ARITH_BAD_CODE:
    case JWRN_BOGUS_PROGRESSION:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
    case JWRN_NOT_SEQUENTIAL:
      return true;
    default:
      return false;
  }
}

JpegErrorManager& ErrorsOf(j_common_ptr info) {
  return *reinterpret_cast<JpegErrorManager*>(info->err);
}

[[noreturn]] void Exit(j_common_ptr info) {
  JpegErrorManager& errors = ErrorsOf(info);
  errors.base.format_message(info, errors.message);
  errors.failed = true;
  longjmp(errors.jump, 1);
}

void Emit(j_common_ptr info, int level) {
  if (level >= 0) return;
  if (MeansDamage(info->err->msg_code)) Exit(info);
}

void WatchProgress(j_common_ptr info) {
  if (!info->is_decompressor) return;
  const auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  if (decompress->input_scan_number > kMaxScans) {
    JpegErrorManager& errors = ErrorsOf(info);
    std::snprintf(errors.message, sizeof errors.message, "more than %d scans", kMaxScans);
    errors.failed = true;
    longjmp(errors.jump, 1);
  }
}

// True if jpeg_crop_scanline works. libjpeg-turbo 2.1 uses too small a width for a component that
// is scaled less than the luma and still has to be upsampled: colours are missing on the right.
bool CanCropColumns(const jpeg_decompress_struct& info) {
  for (int c = 0; c < info.num_components; ++c) {
    const jpeg_component_info& component = info.comp_info[c];
    if (component.DCT_scaled_size == info.min_DCT_scaled_size) continue;
    const int scaled = component.DCT_scaled_size;
    const bool is_full =
        component.h_samp_factor * scaled == info.max_h_samp_factor * info.min_DCT_scaled_size &&
        component.v_samp_factor * scaled == info.max_v_samp_factor * info.min_DCT_scaled_size;
    if (!is_full) return false;
  }
  return true;
}

uint8_t Times(int a, int b) {
  return static_cast<uint8_t>((a * b + 127) / 255);
}

// Converts CMYK to RGB or grey, as printing without profiles does.
void ConvertCmyk(const uint8_t* in, int64_t count, bool inverted, int channels, uint8_t* out) {
  for (int64_t n = 0; n < count; ++n, in += 4, out += channels) {
    const int flip = inverted ? 0 : 255;
    const int black = in[3] ^ flip;
    const uint8_t red = Times(in[0] ^ flip, black);
    const uint8_t green = Times(in[1] ^ flip, black);
    const uint8_t blue = Times(in[2] ^ flip, black);
    if (channels == 3) {
      out[0] = red, out[1] = green, out[2] = blue;
    } else {
      out[0] = Luma(red, green, blue);
    }
  }
}

}  // namespace

struct JpegDecoder::Impl {
  jpeg_decompress_struct info;
  JpegErrorManager errors;
  jpeg_progress_mgr progress;
  int channels = 3;
  bool is_cmyk = false;
};

JpegDecoder::JpegDecoder() : impl_(std::make_unique<Impl>()) {
  Impl& impl = *impl_;
  impl.info.err = jpeg_std_error(&impl.errors.base);
  impl.errors.base.error_exit = Exit;
  impl.errors.base.emit_message = Emit;
  impl.errors.base.output_message = [](j_common_ptr) {};
  PENSTOCK_CHECK(setjmp(impl.errors.jump) == 0);  // fails only for a different libjpeg version
  jpeg_create_decompress(&impl.info);
  std::memset(&impl.progress, 0, sizeof impl.progress);
  impl.progress.progress_monitor = WatchProgress;
  impl.info.progress = &impl.progress;
}

JpegDecoder::~JpegDecoder() {
  jpeg_destroy_decompress(&impl_->info);
}

JpegDecoder& JpegDecoder::OfThisThread() {
  thread_local JpegDecoder decoder;
  return decoder;
}

absl::Status JpegDecoder::Failure() const {
  return absl::DataLossError(absl::StrCat("damaged JPEG image: ", impl_->errors.message));
}

absl::StatusOr<ImageSize> JpegDecoder::Open(std::string_view bytes, int channels) {
  Impl& impl = *impl_;
  jpeg_decompress_struct& info = impl.info;
  jpeg_abort_decompress(&info);
  impl.errors.failed = false;
  impl.channels = channels;
  if (setjmp(impl.errors.jump) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("not a JPEG image: ", impl.errors.message));
  }
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  if (int64_t{info.image_width} * info.image_height > kMaxPixels) {
    return absl::InvalidArgumentError(absl::StrCat("a JPEG image of ", info.image_width, " x ",
                                                   info.image_height, " pixels is too large"));
  }
  // A missing end-of-image marker is the cheapest sign that a file was cut short. (Reading a region
  // may never reach the place where it was cut.)
  if (bytes.rfind("\xFF\xD9") == std::string_view::npos)
    return absl::DataLossError("damaged JPEG image: it has no end marker; the file was cut short");
  impl.is_cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = impl.is_cmyk ? JCS_CMYK : channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  return ImageSize{.height = info.image_height, .width = info.image_width};
}

ImageSize JpegDecoder::ScaledSize(int eighths) {
  jpeg_decompress_struct& info = impl_->info;
  info.scale_num = eighths;
  info.scale_denom = 8;
  jpeg_calc_output_dimensions(&info);
  return {.height = info.output_height, .width = info.output_width};
}

// Reads the rows of the region into `out`, `row_bytes` apart. `unwanted` takes the rows before the
// region. False on failure.
bool JpegDecoder::ReadRows(const Region& wanted, int64_t row_bytes, uint8_t* out,
                           uint8_t* unwanted) {
  Impl& impl = *impl_;
  jpeg_decompress_struct& info = impl.info;
  if (setjmp(impl.errors.jump) != 0) return false;
  // Starts one iMCU row higher, because upsampling reads that row.
  const int64_t margin = int64_t{info.max_v_samp_factor} * info.min_DCT_scaled_size;
  const int64_t start = std::max<int64_t>(0, wanted.y / margin * margin - margin);
  if (start > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(start));
  while (info.output_scanline < wanted.y) {
    JSAMPROW row = unwanted;
    jpeg_read_scanlines(&info, &row, 1);
  }
  while (info.output_scanline < wanted.y + wanted.height) {
    JSAMPROW row = out + (info.output_scanline - wanted.y) * row_bytes;
    jpeg_read_scanlines(&info, &row, 1);
  }
  return true;
}

absl::StatusOr<Pixels> JpegDecoder::Read(const Region& region, int eighths, Arena& arena) {
  Impl& impl = *impl_;
  jpeg_decompress_struct& info = impl.info;
  JDIMENSION first = 0;
  info.scale_num = eighths;
  info.scale_denom = 8;
  if (setjmp(impl.errors.jump) != 0) return Failure();
  jpeg_start_decompress(&info);
  if (region.width < info.output_width && CanCropColumns(info)) {
    const int64_t margin = int64_t{info.max_h_samp_factor} * info.min_DCT_scaled_size;
    const int64_t left = std::max<int64_t>(0, region.x - margin);
    const int64_t right = std::min<int64_t>(info.output_width, region.x + region.width + margin);
    first = static_cast<JDIMENSION>(left);
    JDIMENSION width = static_cast<JDIMENSION>(right - left);
    jpeg_crop_scanline(&info, &first, &width);
  }
  const int64_t row_bytes = int64_t{info.output_width} * info.output_components;
  auto* rows = reinterpret_cast<uint8_t*>(arena.Allocate(row_bytes * region.height));
  auto* unwanted = reinterpret_cast<uint8_t*>(arena.Allocate(row_bytes));
  const int64_t column = region.x - first;
  const bool read = ReadRows(region, row_bytes, rows, unwanted);
  const bool inverted = info.saw_Adobe_marker;
  jpeg_abort_decompress(&info);
  if (!read) return Failure();
  if (!impl.is_cmyk) return Pixels{rows + column * impl.channels, row_bytes};
  const int64_t converted_bytes = region.width * impl.channels;
  auto* converted = reinterpret_cast<uint8_t*>(arena.Allocate(converted_bytes * region.height));
  for (int64_t y = 0; y < region.height; ++y) {
    ConvertCmyk(rows + y * row_bytes + column * 4, region.width, inverted, impl.channels,
                converted + y * converted_bytes);
  }
  return Pixels{converted, converted_bytes};
}

absl::Status JpegDecoder::ReadAll(uint8_t* out, Arena& arena) {
  Impl& impl = *impl_;
  jpeg_decompress_struct& info = impl.info;
  const Region all{0, 0, info.image_width, info.image_height};
  const int64_t row_bytes = all.width * impl.channels;
  if (impl.is_cmyk) {
    ASSIGN_OR_RETURN(const Pixels pixels, Read(all, 8, arena));
    for (int64_t y = 0; y < all.height; ++y)
      std::memcpy(out + y * row_bytes, pixels.first + y * pixels.row_bytes, row_bytes);
    return absl::OkStatus();
  }
  if (setjmp(impl.errors.jump) != 0) return Failure();
  jpeg_start_decompress(&info);
  const bool read = ReadRows(all, row_bytes, out, nullptr);
  jpeg_abort_decompress(&info);
  return read ? absl::OkStatus() : Failure();
}

}  // namespace penstock
