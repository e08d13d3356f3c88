// SPDX-License-Identifier: Apache-2.0
// Runs the test program again as a second process, the other end of a link. Its standard input and
// output are pipes to the first.
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace penstock::transfer {

inline constexpr char kChildVariable[] = "PENSTOCK_TEST_CHILD";

class Child {
 public:
  // Runs `test` of this program as `role`.
  explicit Child(const std::string& role, const std::string& test = "ChildProcess.ObeysTheParent") {
    int to[2];
    int from[2];
    EXPECT_EQ(::pipe2(to, O_CLOEXEC) | ::pipe2(from, O_CLOEXEC), 0);
    const std::string variable = std::string(kChildVariable) + "=" + role;
    const std::string filter = "--gtest_filter=" + test;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(to[0], STDIN_FILENO);
      ::dup2(from[1], STDOUT_FILENO);
      ::putenv(const_cast<char*>(variable.c_str()));
      ::execl("/proc/self/exe", "child", filter.c_str(), "--gtest_brief=1", nullptr);
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    to_ = ::fdopen(to[1], "w");
    from_ = ::fdopen(from[0], "r");
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    Kill();
    std::fclose(to_);
    std::fclose(from_);
  }

  // Returns the rest of the child's next line that begins with '>'.
  std::string Hear() {
    char line[4096];
    while (std::fgets(line, sizeof(line), from_) != nullptr) {
      if (line[0] == '>') return std::string(line + 1, std::strcspn(line + 1, "\n"));
    }
    return "gone";
  }
  void Say(const std::string& line) {
    std::fprintf(to_, "%s\n", line.c_str());
    std::fflush(to_);
  }
  void Stop() {
    ::kill(pid_, SIGSTOP);
    int status;
    ::waitpid(pid_, &status, WUNTRACED);
  }
  void Continue() { ::kill(pid_, SIGCONT); }
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

// Returns the number of mappings of shared segments in this process.
inline int SharedMappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find("memfd:penstock") != std::string::npos;
  }
  return count;
}

// Called in the child:

inline void SayToParent(const std::string& line) {
  std::printf("\n>%s\n", line.c_str());
  std::fflush(stdout);
}

inline std::string HearFromParent() {
  char line[4096];
  if (std::fgets(line, sizeof(line), stdin) == nullptr) ::_exit(0);
  return std::string(line, std::strcspn(line, "\n"));
}

}  // namespace penstock::transfer
