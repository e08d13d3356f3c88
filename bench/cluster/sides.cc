// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "bench/cluster/level.h"
#include "bench/interrupt.h"
#include "bench/measure.h"
#include "bench/source.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

constexpr uint64_t kMemcpySlots = 4;

class MemcpySide final : public Side {
 public:
  explicit MemcpySide(int64_t bytes) : source_(bytes), roles_{{"limit", {::getpid()}}} {
    for (auto& slot : slots_) slot.resize(bytes);
  }

  std::string name() const override { return "memcpy"; }
  const Roles& roles() const override { return roles_; }

  absl::StatusOr<Done> Read(double seconds) override {
    const double start = Now();
    double now = start;
    uint64_t elements = 0;
    for (; !Interrupted() && now < start + seconds; ++elements) {
      source_.Fill(slots_[elements % kMemcpySlots], elements);
      now = Now();
    }
    return Done{.seconds = now - start,
                .elements = static_cast<double>(elements),
                .bytes = static_cast<int64_t>(elements * slots_[0].size())};
  }

 private:
  Source source_;
  const Roles roles_;
  std::vector<std::byte> slots_[kMemcpySlots];
};

class Together final : public Side {
 public:
  explicit Together(std::vector<std::unique_ptr<Side>> sides) : sides_(std::move(sides)) {
    for (const auto& side : sides_) {
      for (const auto& [role, processes] : side->roles()) {
        for (const pid_t pid : processes) {
          auto& all = roles_[role];
          if (std::find(all.begin(), all.end(), pid) == all.end()) all.push_back(pid);
        }
      }
    }
  }

  std::string name() const override { return sides_.front()->name(); }
  const Roles& roles() const override { return roles_; }

  absl::StatusOr<Done> Read(double seconds) override {
    std::vector<absl::StatusOr<Done>> each(sides_.size(), Done());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < sides_.size(); ++i) {
      threads.emplace_back([&, i] { each[i] = sides_[i]->Read(seconds); });
    }
    for (std::thread& thread : threads) thread.join();
    Done sum;
    for (const absl::StatusOr<Done>& one : each) {
      RETURN_IF_ERROR(one.status());
      sum.seconds = std::max(sum.seconds, one->seconds);
      sum.elements += one->elements;
      sum.bytes += one->bytes;
      sum.p50_us = std::max(sum.p50_us, one->p50_us);  // the slowest counts for all
      sum.p99_us = std::max(sum.p99_us, one->p99_us);
      sum.max_us = std::max(sum.max_us, one->max_us);
      sum.shared += one->shared;
      sum.copied += one->copied;
    }
    return sum;
  }

 private:
  const std::vector<std::unique_ptr<Side>> sides_;
  Roles roles_;
};

}  // namespace

std::unique_ptr<Side> MakeMemcpySide(int64_t bytes) {
  return std::make_unique<MemcpySide>(bytes);
}

std::unique_ptr<Side> MakeTogether(std::vector<std::unique_ptr<Side>> sides) {
  if (sides.size() == 1) return std::move(sides.front());
  return std::make_unique<Together>(std::move(sides));
}

}  // namespace penstock::bench
