// SPDX-License-Identifier: Apache-2.0
// A worker in a process of its own, beside those of a Cluster.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "tests/cluster/cluster.h"

extern char** environ;

namespace penstock {

// A process `penstock worker`. Ready when the constructor returns; the destructor kills it with
// kill −9.
class WorkerElsewhere {
 public:
  explicit WorkerElsewhere(const Cluster& cluster, const std::string& tags = "")
      : WorkerElsewhere(cluster.service(), tags) {}
  explicit WorkerElsewhere(const std::string& service, const std::string& tags = "") {
    std::vector<std::string> words = {PENSTOCK_COMMAND, "worker", "--dispatcher-address", service};
    if (!tags.empty()) words.insert(words.end(), {"--worker-tags", tags});
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    int out[2];
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    EXPECT_EQ(posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    FILE* said = fdopen(out[0], "r");
    char line[256] = "";
    EXPECT_NE(std::fgets(line, sizeof line, said), nullptr);
    EXPECT_THAT(line, ::testing::HasSubstr("worker ready"));
    std::fclose(said);
  }
  ~WorkerElsewhere() { Kill(); }
  WorkerElsewhere(const WorkerElsewhere&) = delete;
  WorkerElsewhere& operator=(const WorkerElsewhere&) = delete;

  void Kill() {
    const pid_t pid = std::exchange(pid_, -1);
    if (pid <= 0) return;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace penstock
