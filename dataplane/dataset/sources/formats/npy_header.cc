// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/formats/npy_header.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr std::string_view kNpyMagic("\x93NUMPY", 6);
constexpr int64_t kMaxBytes = int64_t{1} << 60;

// The dict literal of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (7, 2, 3), }
class HeaderLiteral {
 public:
  explicit HeaderLiteral(std::string_view text) : rest_(text) {}

  bool Take(char c) {
    SkipSpace();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::optional<std::string_view> Quoted() {
    SkipSpace();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    const size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::optional<bool> Bool() {
    SkipSpace();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    return std::nullopt;
  }
  std::optional<std::vector<int64_t>> Dims() {
    std::vector<int64_t> dims;
    if (!Take('(')) return std::nullopt;
    while (!Take(')')) {
      SkipSpace();
      const size_t digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
      int64_t dim;
      if (!absl::SimpleAtoi(absl::string_view(rest_.data(), digits), &dim)) return std::nullopt;
      rest_.remove_prefix(digits);
      dims.push_back(dim);
      if (!Take(',') && (rest_.empty() || rest_.front() != ')')) return std::nullopt;
    }
    return dims;
  }
  bool AtEnd() {
    SkipSpace();
    return rest_.empty();
  }

 private:
  void SkipSpace() {
    while (!rest_.empty() && absl::ascii_isspace(static_cast<unsigned char>(rest_.front())))
      rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

struct NpyFields {
  std::optional<std::string_view> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

// nullopt if the text is not such a literal, or if its dtype has fields.
std::optional<NpyFields> ParseLiteral(std::string_view text) {
  HeaderLiteral literal(text);
  NpyFields fields;
  if (!literal.Take('{')) return std::nullopt;
  while (!literal.Take('}')) {
    const std::optional<std::string_view> key = literal.Quoted();
    if (!key.has_value() || !literal.Take(':')) return std::nullopt;
    if (*key == "descr") fields.descr = literal.Quoted();
    if (*key == "fortran_order") fields.fortran_order = literal.Bool();
    if (*key == "shape") fields.shape = literal.Dims();
    literal.Take(',');
  }
  const bool all = fields.descr.has_value() && fields.fortran_order.has_value() &&
                   fields.shape.has_value() && literal.AtEnd();
  return all ? std::optional(std::move(fields)) : std::nullopt;
}

struct Code {
  std::string_view code;  // without the byte order
  DType dtype;
};
constexpr Code kCodes[] = {
    {"b1", kBool},    {"i1", kInt8},    {"i2", kInt16},     {"i4", kInt32},       {"i8", kInt64},
    {"u1", kUInt8},   {"u2", kUInt16},  {"u4", kUInt32},    {"u8", kUInt64},      {"f2", kFloat16},
    {"f4", kFloat32}, {"f8", kFloat64}, {"c8", kComplex64}, {"c16", kComplex128},
};

// Parses for example '<f4' or '|u1'.
absl::StatusOr<DType> DTypeOfDescr(std::string_view descr) {
  const char order = descr.empty() ? '?' : descr.front();
  for (const Code& known : kCodes) {
    if (descr.empty() || descr.substr(1) != known.code) continue;
    if (order == '<' || (order == '|' && SizeOf(known.dtype) == 1)) return known.dtype;
    if (order == '>')
      return absl::UnimplementedError(absl::StrCat(
          "contains big-endian values (", std::string(descr), "); save it as little endian"));
  }
  return absl::UnimplementedError(absl::StrCat("contains values of NumPy dtype '",
                                               absl::CHexEscape(std::string(descr)),
                                               "', which tensors do not support"));
}

// The size of all values in bytes; nullopt if it is more than kMaxBytes.
std::optional<int64_t> ArrayBytes(DType dtype, const std::vector<int64_t>& dims) {
  auto bytes = static_cast<int64_t>(SizeOf(dtype));
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  for (int64_t dim : dims) {
    if (dim > kMaxBytes / bytes) return std::nullopt;
    bytes *= dim;
  }
  return bytes;
}

}  // namespace

std::string NpyHeader::ToString() const {
  return absl::StrCat(Name(dtype), " [", absl::StrJoin(dims, ","), "]");
}

absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view front, std::string_view file) {
  const std::string name(file);
  const auto damaged = [&](const char* what) {
    return absl::DataLossError(absl::StrCat(name, ": ", what));
  };
  if (!front.starts_with(kNpyMagic) || front.size() < 10)
    return damaged("not an array saved by NumPy: its first bytes do not match");
  const auto major = static_cast<uint8_t>(front[6]);
  if (major < 1 || major > 3) return damaged("an unknown version of NumPy's format");
  // Little endian: two bytes in version 1, four in later versions.
  const size_t length_bytes = major == 1 ? 2 : 4;
  uint32_t length = 0;
  if (front.size() < 8 + length_bytes) return damaged("its header is cut off");
  std::memcpy(&length, front.data() + 8, length_bytes);
  const size_t data_offset = 8 + length_bytes + length;
  if (data_offset > front.size()) return damaged("its header is cut off or larger than 64 KiB");

  std::optional<NpyFields> fields = ParseLiteral(front.substr(8 + length_bytes, length));
  if (!fields.has_value())
    return damaged("its header cannot be read: a dict of descr (one dtype), fortran_order, shape");
  absl::StatusOr<DType> dtype = DTypeOfDescr(*fields->descr);
  if (!dtype.ok())
    return absl::Status(dtype.status().code(), absl::StrCat(name, " ", dtype.status().message()));
  NpyHeader header = {.dtype = *dtype,
                      .dims = *std::move(fields->shape),
                      .data_offset = static_cast<int64_t>(data_offset)};
  if (*fields->fortran_order && header.dims.size() > 1) {
    return absl::UnimplementedError(absl::StrCat(
        name, " contains values in Fortran order; save numpy.ascontiguousarray of it"));
  }
  const std::optional<int64_t> bytes = ArrayBytes(header.dtype, header.dims);
  if (!bytes.has_value()) return damaged("its header declares more values than an array can have");
  header.data_bytes = *bytes;
  return header;
}

absl::StatusOr<NpyHeader> ReadNpyHeader(const FileBytes& file) {
  std::string front(std::min(file.size(), kMaxNpyHeaderBytes), '\0');
  RETURN_IF_ERROR(file.Read(0, {reinterpret_cast<std::byte*>(front.data()), front.size()}));
  ASSIGN_OR_RETURN(NpyHeader header, ParseNpyHeader(front, file.name()));
  if (header.data_bytes <= file.size() - header.data_offset) return header;
  return absl::DataLossError(absl::StrCat(file.name(), " is cut off: it has ", file.size(),
                                          " bytes, too few for ", header.ToString()));
}

absl::Status CheckNpy(const NpyHeader& header, const TensorSpec& spec, bool rows,
                      std::string_view file) {
  absl::Span<const int64_t> dims = header.dims;
  const bool has_rows = !rows || !dims.empty();
  if (rows && has_rows) dims.remove_prefix(1);
  if (has_rows && header.dtype == spec.dtype && spec.shape.Admits(dims)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(std::string(file), " contains ", header.ToString(),
                                                 rows ? ", not rows of " : ", not ",
                                                 spec.ToString()));
}

}  // namespace penstock
