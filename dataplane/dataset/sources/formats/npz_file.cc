// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/formats/npz_file.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// Deflate compresses by at most 1032 to 1.
constexpr zip_uint64_t kMostInflated = 1040;

std::string MemberName(const std::string& array) {
  return array + ".npy";
}

}  // namespace

struct NpzFile::Source {
  std::unique_ptr<File> file;
  int64_t position = 0;
  int64_t expected = -1;  // the position after the last read
  zip_error_t error;
  absl::Status failure;  // the error of the file itself

  explicit Source(std::unique_ptr<File> file) : file(std::move(file)) { zip_error_init(&error); }
  ~Source() { zip_error_fini(&error); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  zip_int64_t Read(void* data, zip_uint64_t bytes) {
    if (position != expected) file->WillReadInOrder(position);
    const absl::StatusOr<size_t> got =
        file->ReadAt(position, {static_cast<char*>(data), static_cast<size_t>(bytes)});
    if (!got.ok()) {
      failure = got.status();
      zip_error_set(&error, ZIP_ER_READ, 0);
      return -1;
    }
    position += static_cast<int64_t>(*got);
    expected = position;
    return static_cast<zip_int64_t>(*got);
  }

  zip_int64_t Stat(void* data) const {
    auto* stat = static_cast<zip_stat_t*>(data);
    zip_stat_init(stat);
    stat->size = static_cast<zip_uint64_t>(file->size());
    stat->valid = ZIP_STAT_SIZE;
    return sizeof(*stat);
  }

  // A zip_source_callback.
  static zip_int64_t Call(void* self, void* data, zip_uint64_t bytes, zip_source_cmd_t command) {
    auto& source = *static_cast<Source*>(self);
    switch (command) {
      case ZIP_SOURCE_OPEN:
        source.position = 0;
        return 0;
      case ZIP_SOURCE_READ:
        return source.Read(data, bytes);
      case ZIP_SOURCE_STAT:
        return source.Stat(data);
      case ZIP_SOURCE_SEEK: {
        const zip_int64_t to = zip_source_seek_compute_offset(
            static_cast<zip_uint64_t>(source.position),
            static_cast<zip_uint64_t>(source.file->size()), data, bytes, &source.error);
        if (to < 0) return -1;
        source.position = to;
        return 0;
      }
      case ZIP_SOURCE_TELL:
        return source.position;
      case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&source.error, data, bytes);
      case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_SEEKABLE;
      case ZIP_SOURCE_CLOSE:
      case ZIP_SOURCE_FREE:
        return 0;
      default:
        zip_error_set(&source.error, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
  }
};

NpzFile::NpzFile() = default;
NpzFile::~NpzFile() = default;

absl::StatusOr<std::unique_ptr<NpzFile>> NpzFile::Open(std::unique_ptr<File> file) {
  auto npz = std::unique_ptr<NpzFile>(new NpzFile);
  npz->source_ = std::make_unique<Source>(std::move(file));
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_function_create(Source::Call, npz->source_.get(), &error);
  if (source != nullptr) {
    npz->archive_.reset(zip_open_from_source(source, ZIP_RDONLY, &error));
    if (npz->archive_ == nullptr) zip_source_free(source);
  }
  const std::string why = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (npz->archive_ != nullptr) return npz;
  RETURN_IF_ERROR(npz->source_->failure);
  return absl::DataLossError(absl::StrCat(npz->name(), ": not an .npz file: ", why));
}

const std::string& NpzFile::name() const {
  return source_->file->name();
}

absl::Status NpzFile::Damaged(const std::string& array, std::string_view what) const {
  RETURN_IF_ERROR(source_->failure);
  return absl::DataLossError(absl::StrCat(name(), ": array '", array, "': ", std::string(what)));
}

absl::StatusOr<zip_uint64_t> NpzFile::Locate(const std::string& array) const {
  const zip_int64_t index = zip_name_locate(archive_.get(), MemberName(array).c_str(), 0);
  if (index >= 0) return static_cast<zip_uint64_t>(index);
  constexpr zip_int64_t kListed = 20;
  std::vector<std::string> names;
  const zip_int64_t members = zip_get_num_entries(archive_.get(), 0);
  for (zip_int64_t i = 0; i < std::min(members, kListed); ++i) {
    const char* member = zip_get_name(archive_.get(), static_cast<zip_uint64_t>(i), 0);
    if (member != nullptr) names.push_back(member);
  }
  return absl::NotFoundError(absl::StrCat(name(), ": has no array '", array,
                                          "'; its arrays are: ", absl::StrJoin(names, " ")));
}

absl::StatusOr<NpzFile::Member> NpzFile::OpenMember(const std::string& array,
                                                    zip_uint64_t index) const {
  Member member(zip_fopen_index(archive_.get(), index, 0));
  if (member == nullptr) return Damaged(array, zip_strerror(archive_.get()));
  return member;
}

absl::StatusOr<size_t> NpzFile::Read(zip_file_t& member, const std::string& array,
                                     absl::Span<std::byte> into) const {
  size_t done = 0;
  while (done < into.size()) {
    const zip_int64_t got = zip_fread(&member, into.data() + done, into.size() - done);
    if (got < 0) return Damaged(array, zip_file_strerror(&member));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

absl::StatusOr<NpyHeader> NpzFile::ReadHeader(const std::string& array) {
  ASSIGN_OR_RETURN(const zip_uint64_t index, Locate(array));
  zip_stat_t stat;
  constexpr zip_uint64_t kNeeded = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if (zip_stat_index(archive_.get(), index, 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded)
    return Damaged(array, "the archive does not say how large it is");
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE)
    return Damaged(array, "it is compressed in a way that NumPy does not use");
  const auto file_bytes = static_cast<zip_uint64_t>(source_->file->size());
  if (stat.comp_size > file_bytes || stat.size / kMostInflated > stat.comp_size)
    return Damaged(array, "it cannot be as large as the archive says");

  ASSIGN_OR_RETURN(const Member member, OpenMember(array, index));
  std::vector<std::byte> front(std::min<zip_uint64_t>(stat.size, kMaxNpyHeaderBytes));
  ASSIGN_OR_RETURN(const size_t got, Read(*member, array, absl::MakeSpan(front)));
  const std::string_view seen(reinterpret_cast<const char*>(front.data()), got);
  ASSIGN_OR_RETURN(NpyHeader header,
                   ParseNpyHeader(seen, absl::StrCat(name(), ": array '", array, "'")));
  if (static_cast<zip_uint64_t>(header.data_offset + header.data_bytes) != stat.size) {
    return Damaged(
        array, absl::StrCat("it has ", stat.size, " bytes, which do not fit ", header.ToString()));
  }
  return header;
}

absl::Status NpzFile::ReadValues(const std::string& array, const NpyHeader& header,
                                 absl::Span<std::byte> into) {
  ASSIGN_OR_RETURN(const zip_uint64_t index, Locate(array));
  ASSIGN_OR_RETURN(const Member member, OpenMember(array, index));
  std::vector<std::byte> front(header.data_offset);
  ASSIGN_OR_RETURN(const size_t before, Read(*member, array, absl::MakeSpan(front)));
  ASSIGN_OR_RETURN(const size_t values, Read(*member, array, into));
  if (before < front.size() || values < into.size()) return Damaged(array, "it is cut off");
  std::byte behind[1];  // libzip compares the checksum at the end
  ASSIGN_OR_RETURN(const size_t more, Read(*member, array, behind));
  return more == 0 ? absl::OkStatus() : Damaged(array, "it has more values than its header says");
}

}  // namespace penstock
