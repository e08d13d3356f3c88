// SPDX-License-Identifier: Apache-2.0
// Processes that belong to a cluster, processes that do not, and plain connections to a port.
#pragma once

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/server.h"
#include "tests/cluster/certificates.h"

namespace penstock {

inline constexpr absl::Duration kShortTimeout =
    absl::Milliseconds(500);                                       // for calls that get no answer
inline constexpr absl::Duration kLongTimeout = absl::Seconds(30);  // for calls that are answered

inline const Authority& Ours() {
  static const Authority& authority = *new Authority("ours");
  return authority;
}
inline const TlsConfig& OurProcess() {
  static const TlsConfig& tls = *new TlsConfig(Ours().Issue("process"));
  return tls;
}
inline const TlsConfig& Stranger() {  // trusts us, but its certificate is of another authority
  static const TlsConfig& tls = *new TlsConfig([] {
    TlsConfig made = Authority("theirs").Issue("stranger");
    made.ca = Ours().ca();
    return made;
  }());
  return tls;
}

inline TlsConfig Mutual() {
  TlsConfig tls = OurProcess();
  tls.mutual = true;
  return tls;
}

// Sends `words` to the TCP port of "host:port" and reads until the peer closes.
inline std::string Say(const std::string& address, const std::string& words) {
  const size_t colon = address.rfind(':');
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* at = nullptr;
  EXPECT_EQ(getaddrinfo("127.0.0.1", address.substr(colon + 1).c_str(), &hints, &at), 0);
  const int fd = socket(at->ai_family, SOCK_STREAM, 0);
  EXPECT_EQ(connect(fd, at->ai_addr, at->ai_addrlen), 0) << address;
  freeaddrinfo(at);
  EXPECT_EQ(send(fd, words.data(), words.size(), MSG_NOSIGNAL), static_cast<ssize_t>(words.size()));
  shutdown(fd, SHUT_WR);
  std::string answer;
  char piece[512];
  for (ssize_t got; (got = recv(fd, piece, sizeof piece, 0)) > 0;) {
    answer.append(piece, static_cast<size_t>(got));
  }
  close(fd);
  return answer;
}

// Expects that the page of metrics at this port asks for the token "page-secret".
inline void ExpectPagesAskForTheToken(int port) {
  const std::string at = absl::StrCat("localhost:", port);
  const std::string get = "GET /metrics HTTP/1.1\r\n";
  EXPECT_THAT(Say(at, absl::StrCat(get, "authorization: Bearer page-secret\r\n\r\n")),
              testing::HasSubstr("200 OK"));
  // Basic authentication of "any:page-secret".
  EXPECT_THAT(Say(at, absl::StrCat(get, "Authorization: Basic YW55OnBhZ2Utc2VjcmV0\r\n\r\n")),
              testing::HasSubstr("200 OK"));
  for (const char* wrong :
       {"", "Authorization: Bearer page-secre\r\n", "Authorization: Bearer page-secret2\r\n",
        "Authorization: Basic \r\n", "Authorization: Basic OnBhZ2U=\r\n"}) {
    const std::string answer = Say(at, absl::StrCat(get, wrong, "\r\n"));
    EXPECT_THAT(answer, testing::HasSubstr("401 Unauthorized")) << wrong;
    EXPECT_THAT(answer, testing::Not(testing::HasSubstr("penstock_"))) << wrong;
  }
}

}  // namespace penstock
