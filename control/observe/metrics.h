// SPDX-License-Identifier: Apache-2.0
// Counters and gauges of this process, and their text form for Prometheus.
// Names follow its habits: penstock_elements_taken_total, …_bytes, …_seconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace penstock {

using Labels = std::vector<std::pair<std::string, std::string>>;

// A number that anyone may change at any time without waiting.
class Counter {
 public:
  void Add(int64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_ = 0;
};

class Gauge {
 public:
  void Set(int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void Add(int64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_ = 0;
};

// Any thread. What it hands out lives as long as it does: look it up once, keep
// the reference, and count on that.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The one of that name and these labels, made at first use. `help` is that of
  // the first call for the name.
  Counter& GetCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge& GetGauge(const std::string& name, const std::string& help, const Labels& labels = {});

  // The text exposition format, names in order.
  std::string Render() const;

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

// The process's own.
Metrics& ProcessMetrics();

}  // namespace penstock
