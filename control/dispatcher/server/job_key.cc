// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/job_key.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "control/sync/random.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock::control {
namespace {

constexpr size_t kTokenBytes = 16;
constexpr size_t kIdBytes = 8;

// The id is made from this text. No nonce is equal to it, because a nonce consists of digits.
constexpr char kIdText[] = "identifier";

std::string Hmac(const std::string& key, std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  PENSTOCK_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                      reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest,
                      &size) != nullptr);
  return {reinterpret_cast<const char*>(digest), size};
}

uint64_t IdOf(const std::string& key) {
  const std::string digest = Hmac(key, kIdText);
  uint64_t id = 0;
  for (size_t i = 0; i < kIdBytes; ++i) id = id << 8 | static_cast<unsigned char>(digest[i]);
  return std::max<uint64_t>(id, 1);  // 0: none
}

absl::StatusOr<std::string> ParseKey(const std::string& path, std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const bool valid =
      text.size() == 2 * kJobKeyBytes &&
      std::ranges::all_of(text, [](unsigned char c) { return absl::ascii_isxdigit(c); });
  if (valid) return absl::HexStringToBytes({text.data(), text.size()});
  return absl::DataLossError(
      absl::StrCat("the key of the journal in ", path, " must have ", 2 * kJobKeyBytes,
                   " hexadecimal digits; put back the file that the dispatcher made"));
}

// Makes the file whole or not at all.
absl::Status WriteKey(const std::string& path, const std::string& key, Disk& disk) {
  const std::string draft = path + ".new";
  RETURN_IF_ERROR(disk.Remove(draft));  // of a start that did not come to its end
  ASSIGN_OR_RETURN(const std::unique_ptr<DiskFile> file, disk.CreateLocked(draft));
  RETURN_IF_ERROR(file->Append(absl::StrCat(absl::BytesToHexString(key), "\n")));
  RETURN_IF_ERROR(file->Sync());
  RETURN_IF_ERROR(file->Rename(path));
  ASSIGN_OR_RETURN(const std::unique_ptr<DiskFolder> folder, disk.OpenFolder(FolderOf(path)));
  return folder->Sync();
}

absl::Status WrongKey(const DispatcherConfig& config, const std::string& what) {
  const std::string lost =
      config.work_dir.empty()
          ? ""
          : absl::StrCat(". If it is lost, run `penstock journal repair --forget-key ",
                         config.work_dir,
                         "`, which cancels these jobs; the dispatcher then starts");
  return absl::FailedPreconditionError(absl::StrCat(
      what,
      ", but jobs in the journal need the key with which they began: put back that file, or "
      "name it with journal_key_file",
      lost));
}

}  // namespace

std::string DrawJobKey() {
  std::string digits;
  for (size_t i = 0; i < kJobKeyBytes / sizeof(uint64_t); ++i) {
    absl::StrAppendFormat(&digits, "%016x", RandomNumber());
  }
  return absl::HexStringToBytes(digits);
}

JobTokens TokensWith(std::string key) {
  const uint64_t id = IdOf(key);
  return {.key_id = id, .make = [key = std::move(key)](const std::string& nonce) {
            return absl::BytesToHexString(Hmac(key, nonce).substr(0, kTokenBytes));
          }};
}

std::string JobKeyFileOf(const DispatcherConfig& config) {
  return config.journal_key_file.empty() ? config.work_dir + "/key" : config.journal_key_file;
}

absl::StatusOr<JobTokens> OpenJobKey(const DispatcherConfig& config, uint64_t needed, Disk& disk) {
  const std::string path = JobKeyFileOf(config);
  const absl::StatusOr<std::string> text = disk.Read(path);
  if (absl::IsNotFound(text.status())) {
    if (needed != 0) return WrongKey(config, absl::StrCat("the key file ", path, " is missing"));
    std::string key = DrawJobKey();
    RETURN_IF_ERROR(WriteKey(path, key, disk));
    return TokensWith(std::move(key));
  }
  RETURN_IF_ERROR(text.status());
  ASSIGN_OR_RETURN(std::string key, ParseKey(path, *text));
  JobTokens tokens = TokensWith(std::move(key));
  if (needed == 0 || tokens.key_id == needed) return tokens;
  return WrongKey(config, absl::StrCat("the key file ", path, " has another key"));
}

}  // namespace penstock::control
