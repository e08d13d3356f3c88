// SPDX-License-Identifier: Apache-2.0
#include "bench/workloads/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace penstock::bench {
namespace {

absl::Status Unreadable(const std::string& name) {
  return absl::NotFoundError(absl::StrCat("cannot read ", name));
}

}  // namespace

absl::Status WriteFile(const std::string& name, std::initializer_list<std::string_view> parts) {
  std::ofstream file(name, std::ios::binary);
  for (std::string_view part : parts) {
    file.write(part.data(), static_cast<std::streamsize>(part.size()));
  }
  file.close();
  return file ? absl::OkStatus()
              : absl::ResourceExhaustedError(absl::StrCat("cannot write ", name));
}

absl::Status ReadWhole(const std::string& name, std::string& into) {
  const int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Unreadable(name);
  const absl::Cleanup close = [file] { ::close(file); };
  struct stat status {};
  if (::fstat(file, &status) != 0) return Unreadable(name);
  into.resize(status.st_size);
  for (size_t at = 0; at < into.size();) {
    const ssize_t got = ::pread(file, into.data() + at, into.size() - at, static_cast<off_t>(at));
    if (got <= 0) return Unreadable(name);
    at += got;
  }
  return absl::OkStatus();
}

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& name) {
  const int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Unreadable(name);
  const absl::Cleanup close = [file] { ::close(file); };
  struct stat status {};
  if (::fstat(file, &status) != 0) return Unreadable(name);
  const auto size = static_cast<size_t>(status.st_size);
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return Unreadable(name);
  return MappedFile({static_cast<const std::byte*>(memory), Unmap{size}});
}

std::string NpyHeader(std::string_view dtype, std::initializer_list<int64_t> dims) {
  constexpr int64_t kBefore = 10;
  std::string text = absl::StrFormat("{'descr': '%s', 'fortran_order': False, 'shape': (%s,), }",
                                     std::string(dtype), absl::StrJoin(dims, ", "));
  text.resize(kNpyHeaderBytes - kBefore - 1, ' ');
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() + 1);
  header += '\0';
  return header + text + "\n";
}

void MappedFile::Unmap::operator()(const std::byte* bytes) const {
  ::munmap(const_cast<std::byte*>(bytes), size);
}

}  // namespace penstock::bench
