// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/expr/sliced_rows.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

#include "include/status_macros.h"

namespace penstock {
namespace {

// The part of the value that is processed at a time; it stays in the first-level cache.
constexpr int64_t kPieceBytes = 16 << 10;

// The part of each row that one slice takes.
struct Columns {
  int64_t first_row, end_row;
  int64_t dims[2];
  int64_t offset;  // bytes into a row
  size_t bytes;    // of a row
};

// Copies `rows` rows of kBytes bytes, `stride` bytes apart, into consecutive memory. The compiler
// knows the size and emits plain moves.
template <size_t kBytes>
void CopyRowsOf(const std::byte* from, int64_t stride, int64_t rows, std::byte* to) {
  for (int64_t row = 0; row < rows; ++row, from += stride, to += kBytes)
    std::memcpy(to, from, kBytes);
}

void CopyRows(const std::byte* from, int64_t stride, int64_t rows, size_t bytes, std::byte* to) {
  switch (bytes) {
    case 1:
      return CopyRowsOf<1>(from, stride, rows, to);
    case 2:
      return CopyRowsOf<2>(from, stride, rows, to);
    case 4:
      return CopyRowsOf<4>(from, stride, rows, to);
    case 8:
      return CopyRowsOf<8>(from, stride, rows, to);
    case 12:
      return CopyRowsOf<12>(from, stride, rows, to);
    case 16:
      return CopyRowsOf<16>(from, stride, rows, to);
    case 20:
      return CopyRowsOf<20>(from, stride, rows, to);
    case 24:
      return CopyRowsOf<24>(from, stride, rows, to);
    case 28:
      return CopyRowsOf<28>(from, stride, rows, to);
    case 32:
      return CopyRowsOf<32>(from, stride, rows, to);
    default:
      for (int64_t row = 0; row < rows; ++row, from += stride, to += bytes)
        std::memcpy(to, from, bytes);
  }
}

TensorSpec SpecOf(const FunctionDef& def, uint32_t value) {
  const auto inputs = def.input.leaves();
  if (value < inputs.size()) return inputs[value];
  uint32_t first = static_cast<uint32_t>(inputs.size());
  for (const OpDef& op : def.ops) {
    if (value < first + op.outputs.size()) return op.outputs[value - first];
    first += static_cast<uint32_t>(op.outputs.size());
  }
  return {};
}

}  // namespace

std::vector<SlicedRows> FindSlicedRows(const FunctionDef& def) {
  std::map<uint32_t, SlicedRows> by_value;
  for (size_t i = 0; i < def.ops.size(); ++i)
    if (def.ops[i].op == "Slice") by_value[def.ops[i].inputs[0]].push_back(i);
  std::vector<SlicedRows> found;
  for (auto& [value, slices] : by_value) {
    if (slices.size() < 2) continue;
    const TensorSpec spec = SpecOf(def, value);
    if (spec.IsStatic() && spec.dtype != kString && spec.shape.rank() == 2)
      found.push_back(std::move(slices));
  }
  return found;
}

// `width`: the size of a value in bytes.
static std::vector<Columns> ColumnsOf(const FunctionDef& def, const SlicedRows& slices,
                                      int64_t width) {
  std::vector<Columns> columns;
  for (size_t slice : slices) {
    const auto& begin = Get<std::vector<int64_t>>(def.ops[slice].attrs, "begin");
    const auto dims = def.ops[slice].outputs[0].shape.dims();
    columns.push_back({.first_row = begin[0],
                       .end_row = begin[0] + dims[0],
                       .dims = {dims[0], dims[1]},
                       .offset = begin[1] * width,
                       .bytes = static_cast<size_t>(dims[1] * width)});
  }
  return columns;
}

Kernel MakeSlicedRows(const FunctionDef& def, const SlicedRows& slices) {
  const TensorSpec value = SpecOf(def, def.ops[slices[0]].inputs[0]);
  const auto width = static_cast<int64_t>(SizeOf(value.dtype));
  const int64_t row_bytes = value.shape.dims()[1] * width;
  const int64_t rows = value.shape.dims()[0];
  const std::vector<Columns> columns = ColumnsOf(def, slices, width);
  return [=](OpRun& run) -> absl::Status {
    absl::InlinedVector<std::byte*, 32> outs;
    for (size_t i = 0; i < columns.size(); ++i) {
      ASSIGN_OR_RETURN(const absl::Span<std::byte> out, run.Place(i, columns[i].dims));
      outs.push_back(out.data());
    }
    const auto* in = static_cast<const std::byte*>(run.input(0).raw());
    const int64_t piece = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(row_bytes, 1));
    for (int64_t first = 0; first < rows; first += piece) {
      const int64_t end = std::min(first + piece, rows);
      for (size_t i = 0; i < columns.size(); ++i) {
        const Columns& its = columns[i];
        const int64_t from = std::max(first, its.first_row);
        const int64_t count = std::min(end, its.end_row) - from;
        if (count <= 0 || its.bytes == 0) continue;
        CopyRows(in + from * row_bytes + its.offset, row_bytes, count, its.bytes, outs[i]);
        outs[i] += count * its.bytes;
      }
    }
    return absl::OkStatus();
  };
}

}  // namespace penstock
