// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/formats/parquet_file.h"

#include <arrow/api.h>
#include <arrow/io/interfaces.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dataplane/memory/element_limit.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// Adapts a File to Arrow. `failure` keeps the error of the file itself.
class ArrowFile final : public arrow::io::RandomAccessFile {
 public:
  // `pool` must outlive this object.
  ArrowFile(std::unique_ptr<File> file, arrow::MemoryPool* pool)
      : file_(std::move(file)), pool_(pool) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Result<int64_t> GetSize() override { return file_->size(); }
  arrow::Status Seek(int64_t position) override {
    position_ = position;
    return arrow::Status::OK();
  }
  arrow::Result<int64_t> Read(int64_t bytes, void* out) override {
    const absl::StatusOr<size_t> got =
        file_->ReadAt(position_, {static_cast<char*>(out), static_cast<size_t>(bytes)});
    if (!got.ok()) {
      failure = got.status();
      return arrow::Status::IOError("the file cannot be read");
    }
    position_ += static_cast<int64_t>(*got);
    return static_cast<int64_t>(*got);
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t bytes) override {
    ARROW_ASSIGN_OR_RAISE(std::unique_ptr<arrow::ResizableBuffer> buffer,
                          arrow::AllocateResizableBuffer(bytes, pool_));
    ARROW_ASSIGN_OR_RAISE(const int64_t got, Read(bytes, buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(got));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }

  const std::string& name() const { return file_->name(); }

  absl::Status failure;

 private:
  const std::unique_ptr<File> file_;
  arrow::MemoryPool* const pool_;
  int64_t position_ = 0;
  bool closed_ = false;
};

// Converts an Arrow status about `part` of the file.
absl::Status ToStatus(const arrow::Status& status, const ArrowFile& file, const std::string& part) {
  if (status.ok()) return absl::OkStatus();
  RETURN_IF_ERROR(file.failure);
  if (status.IsOutOfMemory()) {
    return Annotate(AboveElementLimit(absl::StrCat(file.name(), ": the memory for reading ", part)),
                    status.message());
  }
  return absl::DataLossError(absl::StrCat(file.name(), ": ", part, ": ", status.message()));
}

// The Arrow type of numbers of this dtype; nullopt for strings and for dtypes that Arrow lacks.
std::optional<arrow::Type::type> ArrowType(DType dtype) {
  switch (dtype) {
    case kBool:
      return arrow::Type::BOOL;
    case kInt8:
      return arrow::Type::INT8;
    case kInt16:
      return arrow::Type::INT16;
    case kInt32:
      return arrow::Type::INT32;
    case kInt64:
      return arrow::Type::INT64;
    case kUInt8:
      return arrow::Type::UINT8;
    case kUInt16:
      return arrow::Type::UINT16;
    case kUInt32:
      return arrow::Type::UINT32;
    case kUInt64:
      return arrow::Type::UINT64;
    case kFloat16:
      return arrow::Type::HALF_FLOAT;
    case kFloat32:
      return arrow::Type::FLOAT;
    case kFloat64:
      return arrow::Type::DOUBLE;
    default:
      return std::nullopt;
  }
}

bool IsString(arrow::Type::type type) {
  return type == arrow::Type::STRING || type == arrow::Type::BINARY ||
         type == arrow::Type::LARGE_STRING || type == arrow::Type::LARGE_BINARY;
}

bool IsList(arrow::Type::type type) {
  return type == arrow::Type::LIST || type == arrow::Type::LARGE_LIST ||
         type == arrow::Type::FIXED_SIZE_LIST;
}

// Returns whether values of `type` can be read as `leaf`.
bool FitsArrowType(const arrow::DataType& type, const TensorSpec& leaf) {
  if (leaf.dtype == kString) return IsString(type.id());
  if (leaf.shape.rank() == 0) return type.id() == ArrowType(leaf.dtype);
  return IsList(type.id()) && type.field(0)->type()->id() == ArrowType(leaf.dtype);
}

// Copies values [begin, begin + count) of an array of numbers that are `width` bytes wide.
void CopyNumbers(const arrow::Array& array, int64_t begin, int64_t count, size_t width,
                 absl::Span<std::byte> into) {
  if (array.type_id() == arrow::Type::BOOL) {  // stored as bits
    const auto& bools = static_cast<const arrow::BooleanArray&>(array);
    for (int64_t i = 0; i < count; ++i) into[i] = std::byte{bools.Value(begin + i)};
    return;
  }
  const auto* values = array.data()->GetValues<uint8_t>(1, 0);
  if (count > 0)
    std::memcpy(into.data(), values + (array.offset() + begin) * static_cast<int64_t>(width),
                count * width);
}

std::string_view StringAt(const arrow::Array& array, int64_t row) {
  if (array.type_id() == arrow::Type::STRING || array.type_id() == arrow::Type::BINARY)
    return static_cast<const arrow::BinaryArray&>(array).GetView(row);
  return static_cast<const arrow::LargeBinaryArray&>(array).GetView(row);
}

// The values of one row of a list column.
struct Part {
  const arrow::Array& values;
  int64_t begin, count;
};
Part ListAt(const arrow::Array& array, int64_t row) {
  switch (array.type_id()) {
    case arrow::Type::LIST: {
      const auto& list = static_cast<const arrow::ListArray&>(array);
      return {*list.values(), list.value_offset(row), list.value_length(row)};
    }
    case arrow::Type::LARGE_LIST: {
      const auto& list = static_cast<const arrow::LargeListArray&>(array);
      return {*list.values(), list.value_offset(row), list.value_length(row)};
    }
    default: {
      const auto& list = static_cast<const arrow::FixedSizeListArray&>(array);
      return {*list.values(), list.value_offset(row), list.value_length(row)};
    }
  }
}

// Returns the index of the Parquet column that holds this field. REQUIRES: the field has one
// column.
int ColumnOf(const parquet::arrow::SchemaField& field) {
  return field.children.empty() ? field.column_index : ColumnOf(field.children[0]);
}

}  // namespace

struct ParquetFile::Arrow {
  // Limits the memory that Arrow may use for the file to the size of one element.
  arrow::ProxyMemoryPool counted{arrow::default_memory_pool()};
  arrow::CappedMemoryPool pool{&counted, MostElementBytes()};
  std::shared_ptr<ArrowFile> file;
  std::unique_ptr<parquet::arrow::FileReader> reader;
  std::vector<int> columns;                           // Parquet column of each leaf
  int64_t group = -1;                                 // the loaded row group
  absl::Status failure;                               // the error of loading `group`
  std::vector<std::shared_ptr<arrow::Array>> arrays;  // one per leaf
};

absl::Status CheckParquetLeaf(const TensorSpec& leaf) {
  const bool dense = leaf.kind == TensorSpec::Kind::kDense && leaf.shape.has_rank();
  const int most = leaf.dtype == kString ? 0 : 1;  // largest rank
  const bool known = leaf.dtype == kString || ArrowType(leaf.dtype).has_value();
  if (dense && known && leaf.shape.rank() <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "columns contains ", leaf.ToString(),
      "; a column is read as a scalar of its own type or as one dimension of numbers"));
}

ParquetFile::ParquetFile(std::string name, const Spec& columns)
    : name_(std::move(name)), columns_(columns), arrow_(std::make_unique<Arrow>()) {}
ParquetFile::~ParquetFile() = default;

absl::StatusOr<std::unique_ptr<ParquetFile>> ParquetFile::Open(std::unique_ptr<File> file,
                                                               const Spec& columns) {
  auto parquet = std::unique_ptr<ParquetFile>(new ParquetFile(file->name(), columns));
  Arrow& arrow = *parquet->arrow_;
  arrow.file = std::make_shared<ArrowFile>(std::move(file), &arrow.pool);
  parquet::arrow::FileReaderBuilder builder;
  arrow::Status opened = builder.Open(arrow.file, parquet::ReaderProperties(&arrow.pool));
  if (opened.ok()) opened = builder.memory_pool(&arrow.pool)->Build(&arrow.reader);
  RETURN_IF_ERROR(ToStatus(opened, *arrow.file, "its footer"));

  std::shared_ptr<arrow::Schema> schema;
  RETURN_IF_ERROR(ToStatus(arrow.reader->GetSchema(&schema), *arrow.file, "its schema"));
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string& column = columns.key(i);
    const int field = schema->GetFieldIndex(column);
    if (field < 0) {
      return absl::NotFoundError(
          absl::StrCat(parquet->name_, ": has no column '", column,
                       "'; its columns are: ", absl::StrJoin(schema->field_names(), " ")));
    }
    const arrow::DataType& type = *schema->field(field)->type();
    if (!FitsArrowType(type, columns.leaves()[i])) {
      return absl::InvalidArgumentError(absl::StrCat(parquet->name_, ": column '", column, "' is ",
                                                     type.ToString(), ", not ",
                                                     columns.leaves()[i].ToString()));
    }
    arrow.columns.push_back(ColumnOf(arrow.reader->manifest().schema_fields[field]));
  }
  const std::shared_ptr<parquet::FileMetaData> metadata =
      arrow.reader->parquet_reader()->metadata();
  for (int group = 0; group < metadata->num_row_groups(); ++group)
    parquet->group_rows_.push_back(metadata->RowGroup(group)->num_rows());
  return parquet;
}

absl::Status ParquetFile::Load(int64_t group) {
  if (arrow_->group == group) return arrow_->failure;
  arrow_->group = group;
  arrow_->arrays.clear();
  const auto load = [&]() -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::Table> table,
                          arrow_->reader->ReadRowGroup(static_cast<int>(group), arrow_->columns));
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::shared_ptr<arrow::ChunkedArray> column = table->GetColumnByName(columns_.key(i));
      if (column == nullptr || column->length() != group_rows_[group])
        return arrow::Status::Invalid("a column has a different number of rows from its row group");
      if (column->num_chunks() == 1) {
        arrow_->arrays.push_back(column->chunk(0));
        continue;
      }
      ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Array> whole,
                            arrow::Concatenate(column->chunks(), &arrow_->pool));
      arrow_->arrays.push_back(std::move(whole));
    }
    for (const auto& array : arrow_->arrays) ARROW_RETURN_NOT_OK(array->Validate());
    return arrow::Status::OK();
  };
  arrow_->failure = ToStatus(load(), *arrow_->file, absl::StrCat("row group ", group));
  return arrow_->failure;
}

absl::Status ParquetFile::Fill(int64_t row, ResultSink& sink) const {
  for (size_t i = 0; i < columns_.size(); ++i) {
    const TensorSpec& leaf = columns_.leaves()[i];
    const arrow::Array& array = *arrow_->arrays[i];
    if (array.IsNull(row)) {
      if (!leaf.optional) {
        return absl::InvalidArgumentError(absl::StrCat(name_, ": column '", columns_.key(i),
                                                       "' is null in row ", row, " of row group ",
                                                       arrow_->group, "; make its leaf optional"));
      }
      RETURN_IF_ERROR(sink.Copy(i, Tensor()));
      continue;
    }
    if (leaf.dtype == kString) {
      const std::string_view value = StringAt(array, row);
      const std::array<uint64_t, 2> offsets = {0, value.size()};
      RETURN_IF_ERROR(sink.Copy(i, Tensor(kString, {}, offsets.data(), value.data())));
      continue;
    }
    const bool list = leaf.shape.rank() == 1;
    const Part part = list ? ListAt(array, row) : Part{array, row, 1};
    const int64_t dims[] = {part.count};
    if (list && (!leaf.shape.Admits(dims) || part.values.null_count() > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name_, ": column '", columns_.key(i), "' has ", part.count,
                       " values in row ", row, " of row group ", arrow_->group,
                       ", possibly with nulls among them, not ", leaf.ToString()));
    }
    ASSIGN_OR_RETURN(const absl::Span<std::byte> memory,
                     sink.Place(i, leaf.dtype, absl::MakeConstSpan(dims, list ? 1 : 0)));
    CopyNumbers(part.values, part.begin, part.count, SizeOf(leaf.dtype), memory);
  }
  return absl::OkStatus();
}

}  // namespace penstock
