// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/auth_file.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "control/settings/toml_file.h"
#include "control/sync/random.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

constexpr char kDigest[] = "sha256:";
constexpr size_t kMaxNameBytes = 256;

bool IsDigest(const std::string& text) {
  constexpr size_t kPrefix = sizeof kDigest - 1;
  return absl::StartsWith(text, kDigest) && text.size() == kPrefix + 2 * SHA256_DIGEST_LENGTH &&
         std::all_of(text.begin() + kPrefix, text.end(), [](char c) {
           return absl::ascii_isdigit(static_cast<unsigned char>(c)) || (c >= 'a' && c <= 'f');
         });
}

bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::none_of(name.begin(), name.end(),
                      [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); });
}

absl::StatusOr<Role> ReadRole(const TomlValue& value) {
  const auto* text = std::get_if<std::string>(&value.value);
  for (const Role role : {Role::kTrainer, Role::kWorker, Role::kOperator}) {
    if (text != nullptr && *text == ToText(role)) return role;
  }
  return absl::InvalidArgumentError("role must be \"trainer\", \"worker\" or \"operator\"");
}

absl::StatusOr<std::vector<std::string>> ReadList(const TomlEntry& entry) {
  const auto* list = std::get_if<std::vector<std::string>>(&entry.value.value);
  if (list != nullptr && !list->empty()) return *list;
  return absl::InvalidArgumentError(
      absl::StrCat(entry.key, " must be a list of one or more strings, such as [\"…\"]"));
}

// One section of the file.
struct Section {
  Principal principal;
  std::vector<std::string> tokens;
  std::vector<std::string> certificates;
  bool has_role = false;
};

absl::Status ReadEntry(const TomlEntry& entry, Section& to) {
  if (entry.key == "role") {
    ASSIGN_OR_RETURN(to.principal.role, ReadRole(entry.value));
    to.has_role = true;
  } else if (entry.key == "tokens") {
    ASSIGN_OR_RETURN(to.tokens, ReadList(entry));
  } else if (entry.key == "certificates") {
    ASSIGN_OR_RETURN(to.certificates, ReadList(entry));
  } else if (entry.key == "namespaces") {
    ASSIGN_OR_RETURN(to.principal.namespaces, ReadList(entry));
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "unknown key '", entry.key, "'; known: certificates, namespaces, role, tokens"));
  }
  return absl::OkStatus();
}

absl::Status Check(const Section& section) {
  if (!IsName(section.principal.name)) {
    return absl::InvalidArgumentError(
        "the name of a principal has 1 to 256 bytes and no control characters");
  }
  if (!section.has_role) {
    return absl::InvalidArgumentError(
        "role is missing; it is \"trainer\", \"worker\" or \"operator\"");
  }
  if (section.tokens.empty() && section.certificates.empty()) {
    return absl::InvalidArgumentError(
        "there are neither tokens nor certificates, so no process is this principal; `penstock "
        "auth token FILE` makes a token");
  }
  if (section.principal.role == Role::kWorker && !section.principal.namespaces.empty()) {
    return absl::InvalidArgumentError(
        "a worker serves jobs of all namespaces, so it may have no `namespaces`");
  }
  return absl::OkStatus();
}

}  // namespace

std::string MakeToken() {
  std::string token;
  for (int i = 0; i < 4; ++i) absl::StrAppendFormat(&token, "%016x", RandomNumber());
  return token;
}

std::string TokenDigest(std::string_view token) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest);
  return absl::StrCat(
      kDigest, absl::BytesToHexString({reinterpret_cast<const char*>(digest), sizeof digest}));
}

absl::Status AuthFile::Add(Principal principal, const std::vector<std::string>& tokens,
                           const std::vector<std::string>& certificates) {
  const size_t place = principals_.size();
  for (const std::string& token : tokens) {
    if (!IsDigest(token)) {
      return absl::InvalidArgumentError(
          "a token is given as \"sha256:\" and 64 digits 0-9 and a-f; `penstock auth token FILE` "
          "prints this line");
    }
    const auto [same, is_new] = by_token_.try_emplace(token, place);
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat("the token ", token.substr(0, sizeof kDigest + 7), "… also belongs to ",
                       same->second == place ? principal.name : principals_[same->second].name));
    }
  }
  for (const std::string& name : certificates) {
    const auto [same, is_new] = by_certificate_.try_emplace(name, place);
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat("the certificate ", name, " also belongs to ",
                       same->second == place ? principal.name : principals_[same->second].name));
    }
  }
  principals_.push_back(std::move(principal));
  return absl::OkStatus();
}

absl::StatusOr<AuthFile> AuthFile::Parse(const std::string& text, const std::string& path) {
  ASSIGN_OR_RETURN(const std::vector<TomlSection> sections, ParseToml(text, path));
  const auto at = [&](int line, const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(path, ":", line, ": ", status.message()));
  };
  if (sections.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": there is no principal; write one as a section, such as [my-worker]"));
  }
  AuthFile file;
  for (const TomlSection& from : sections) {
    Section section{.principal = {.name = from.name}};
    for (const TomlEntry& entry : from.entries) {
      RETURN_IF_ERROR(at(entry.line, ReadEntry(entry, section)));
    }
    RETURN_IF_ERROR(at(from.line, Check(section)));
    RETURN_IF_ERROR(at(
        from.line, file.Add(std::move(section.principal), section.tokens, section.certificates)));
  }
  return file;
}

const Principal* AuthFile::FindByToken(std::string_view token) const {
  const std::string digest = TokenDigest(token);
  const Principal* found = nullptr;
  for (const auto& [known, place] : by_token_) {
    if (CRYPTO_memcmp(known.data(), digest.data(), digest.size()) == 0) found = &principals_[place];
  }
  return found;
}

const Principal* AuthFile::FindByCertificate(const std::string& name) const {
  const auto found = by_certificate_.find(name);
  return found == by_certificate_.end() ? nullptr : &principals_[found->second];
}

}  // namespace penstock::control
