// SPDX-License-Identifier: Apache-2.0
// Certificates for tests, made by the openssl command.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "penstock/tls.h"

namespace penstock {

// A certificate authority with a folder of its own. Its certificates are for localhost.
class Authority {
 public:
  explicit Authority(const std::string& name)
      : folder_(absl::StrCat(testing::TempDir(), "/", name, "-", getpid())) {
    OpenSsl(absl::StrCat("mkdir -p ", folder_));
    std::ofstream(absl::StrCat(folder_, "/names")) << "subjectAltName=DNS:localhost,IP:127.0.0.1\n";
    OpenSsl(absl::StrCat("openssl req -x509 -days 2 -subj /CN=", name, kKey, "-keyout ",
                         Path("ca.key"), " -out ", ca()));
  }

  std::string ca() const { return Path("ca.pem"); }

  // Returns a process's TLS files, with a certificate of its own.
  TlsConfig Issue(const std::string& name) const {
    TlsConfig tls = {.ca = ca(),
                     .certificate = Path(absl::StrCat(name, ".pem")),
                     .key = Path(absl::StrCat(name, ".key"))};
    OpenSsl(absl::StrCat("openssl req -subj /CN=", name, kKey, "-keyout ", tls.key, " -out ",
                         Path("request")));
    OpenSsl(absl::StrCat("openssl x509 -req -days 2 -CAcreateserial -CA ", ca(), " -CAkey ",
                         Path("ca.key"), " -in ", Path("request"), " -extfile ", Path("names"),
                         " -out ", tls.certificate));
    return tls;
  }

  // Gives the files of `from` the names of `to`'s, as a program that renews certificates does.
  static void Replace(const TlsConfig& to, const TlsConfig& from) {
    EXPECT_EQ(std::rename(from.key.c_str(), to.key.c_str()), 0);
    EXPECT_EQ(std::rename(from.certificate.c_str(), to.certificate.c_str()), 0);
  }

 private:
  static constexpr char kKey[] = " -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes ";

  std::string Path(const std::string& file) const { return absl::StrCat(folder_, "/", file); }
  static void OpenSsl(const std::string& command) {
    EXPECT_EQ(std::system(absl::StrCat(command, " 2>/dev/null").c_str()), 0) << command;
  }

  const std::string folder_;
};

}  // namespace penstock
