// SPDX-License-Identifier: Apache-2.0
// The file that says which processes may do what at a dispatcher (docs/security.md). One section
// per principal:
//
//   [vision-team]
//   role = "trainer"                  # or "worker" or "operator"
//   tokens = ["sha256:9f86…"]         # digests of tokens, so that the file contains no token
//   certificates = ["vision.example"] # common names or alternative names of certificates
//   namespaces = ["vision"]           # that it may use; if left out: all
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "control/protocol/principal.h"

namespace penstock::control {

// Returns a new token: 64 hexadecimal digits that nobody can guess.
std::string MakeToken();
// Returns the token as the file names it: "sha256:" and 64 hexadecimal digits.
std::string TokenDigest(std::string_view token);

// The content of the file. Constant.
class AuthFile {
 public:
  // InvalidArgument "path:line: …" for a line that is not valid, or if a token or the name of a
  // certificate belongs to two principals.
  static absl::StatusOr<AuthFile> Parse(const std::string& text, const std::string& path);

  size_t size() const { return principals_.size(); }
  // Return null if there is no such principal.
  // Takes the same time for every token.
  const Principal* FindByToken(std::string_view token) const;
  const Principal* FindByCertificate(const std::string& name) const;

 private:
  absl::Status Add(Principal principal, const std::vector<std::string>& tokens,
                   const std::vector<std::string>& certificates);

  std::vector<Principal> principals_;
  std::map<std::string, size_t> by_token_;  // by digest; the value: the place in principals_
  std::map<std::string, size_t> by_certificate_;
};

}  // namespace penstock::control
