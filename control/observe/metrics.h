// SPDX-License-Identifier: Apache-2.0
// Counters, gauges and histograms of this process, and their text form for Prometheus. Their names
// follow Prometheus's conventions: penstock_file_requests_total, …_bytes, …_seconds.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace penstock {

using Labels = std::vector<std::pair<std::string, std::string>>;

// A number that any thread may increase at any time without waiting. A counter whose name ends in
// _seconds_total counts microseconds, but is printed in seconds.
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
  // Sets the gauge to `value`, unless its value is already at least `value`.
  void Raise(int64_t value) {
    int64_t before = value_.load(std::memory_order_relaxed);
    while (before < value && !value_.compare_exchange_weak(before, value)) {
    }
  }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_ = 0;
};

// Counts durations by their upper bounds, which range from 1 µs to 100 s, two per decade. Any
// thread may call Observe() at any time without waiting.
class Histogram {
 public:
  static constexpr std::array<double, 17> kBounds = {
      1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100};

  void Observe(double seconds);
  int64_t count() const;  // of all durations
  // Returns the number of durations that were at most kBounds[i]; for `i` = kBounds.size(), the
  // number of all durations.
  int64_t count_up_to(size_t i) const;
  double sum() const { return static_cast<double>(sum_ns_.load(std::memory_order_relaxed)) / 1e9; }

 private:
  std::array<std::atomic<int64_t>, kBounds.size() + 1> between_{};
  std::atomic<int64_t> sum_ns_ = 0;
};

// The metrics of a process. Any thread may call any method. A metric that is returned by reference
// lives as long as this object: look it up once, and keep the reference.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Returns the metric with this name and these labels; the first call makes it. The first call for
  // a name sets the help text of that name.
  Counter& GetCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  // Returns a counter for labels that come and go, such as those of clients. When a counter has
  // lost its last owner, it is kept while it is among the newest kGoneKept such counters, because
  // its last count may not have been read yet.
  std::shared_ptr<Counter> ShareCounter(const std::string& name, const std::string& help,
                                        const Labels& labels);
  static constexpr size_t kGoneKept = 128;
  Gauge& GetGauge(const std::string& name, const std::string& help, const Labels& labels = {});
  // REQUIRES: `name` ends in _seconds.
  Histogram& GetHistogram(const std::string& name, const std::string& help,
                          const Labels& labels = {});

  // Returns all metrics in Prometheus's text exposition format, sorted by name within each type.
  // Each counter in seconds is printed a second time in microseconds, under the name that releases
  // before 0.9 gave it (…_microseconds_total). Release 0.10 drops these lines.
  std::string Render() const;

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

// Returns the metrics of this process.
Metrics& ProcessMetrics();

}  // namespace penstock
