// SPDX-License-Identifier: Apache-2.0
#include "control/observe/metrics.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "control/sync/mutex.h"

namespace penstock {

// All metrics with one name. The map's key is the label text.
template <class Metric>
struct MetricFamily {
  std::string help;
  std::map<std::string, std::shared_ptr<Metric>> members;
  std::vector<std::string> shared = {};  // label texts of ShareCounter(), oldest first
};

namespace {

// Returns {a="b",c="d"}.
std::string LabelText(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels) {
    absl::StrAppend(&text, text.empty() ? "{" : ",", key, "=\"", absl::CEscape(value), "\"");
  }
  if (!text.empty()) text += '}';
  return text;
}

constexpr std::string_view kSeconds = "_seconds_total";

bool InSeconds(std::string_view name) {
  return name.ends_with(kSeconds);
}

void RenderMember(const std::string& name, const std::string& labels, const Counter& counter,
                  std::string& text) {
  absl::StrAppend(&text, name, labels, " ");
  if (InSeconds(name)) {
    absl::StrAppendFormat(&text, "%.6f\n", static_cast<double>(counter.value()) / 1e6);
  } else {
    absl::StrAppend(&text, counter.value(), "\n");
  }
}

void RenderMember(const std::string& name, const std::string& labels, const Gauge& gauge,
                  std::string& text) {
  absl::StrAppend(&text, name, labels, " ", gauge.value(), "\n");
}

// Writes one line for each bound, then the sum and the count.
void RenderMember(const std::string& name, const std::string& labels, const Histogram& histogram,
                  std::string& text) {
  const std::string others = labels.empty() ? "{" : labels.substr(0, labels.size() - 1) + ",";
  constexpr size_t kBounds = Histogram::kBounds.size();
  for (size_t i = 0; i <= kBounds; ++i) {
    const std::string bound = i == kBounds ? "+Inf" : absl::StrCat(Histogram::kBounds[i]);
    absl::StrAppend(&text, name, "_bucket", others, "le=\"", bound, "\"} ",
                    histogram.count_up_to(i), "\n");
  }
  absl::StrAppend(&text, name, "_sum", labels, " ", histogram.sum(), "\n", name, "_count", labels,
                  " ", histogram.count(), "\n");
}

template <class Metric>
void RenderFamily(const std::string& name, const MetricFamily<Metric>& family, const char* type,
                  std::string& text) {
  absl::StrAppend(&text, "# HELP ", name, " ", family.help, "\n# TYPE ", name, " ", type, "\n");
  for (const auto& [labels, metric] : family.members) RenderMember(name, labels, *metric, text);
}

template <class Metric>
void RenderFamilies(const std::map<std::string, MetricFamily<Metric>>& families, const char* type,
                    std::string& text) {
  for (const auto& [name, family] : families) RenderFamily(name, family, type, text);
}

void RenderUnderOldNames(const std::map<std::string, MetricFamily<Counter>>& counters,
                         std::string& text) {
  for (const auto& [name, family] : counters) {
    if (!InSeconds(name)) continue;
    const std::string stem = name.substr(0, name.size() - kSeconds.size());
    RenderFamily(stem + "_microseconds_total", family, "counter", text);
  }
}

}  // namespace

void Histogram::Observe(double seconds) {
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  between_[static_cast<size_t>(bound - kBounds.begin())].fetch_add(1, std::memory_order_relaxed);
  sum_ns_.fetch_add(static_cast<int64_t>(seconds * 1e9), std::memory_order_relaxed);
}

int64_t Histogram::count() const {
  return count_up_to(kBounds.size());
}

int64_t Histogram::count_up_to(size_t i) const {
  int64_t count = 0;
  for (size_t b = 0; b <= i; ++b) count += between_[b].load(std::memory_order_relaxed);
  return count;
}

struct Metrics::Rep {
  mutable Mutex mu;
  std::map<std::string, MetricFamily<Counter>> counters GUARDED_BY(mu);
  std::map<std::string, MetricFamily<Gauge>> gauges GUARDED_BY(mu);
  std::map<std::string, MetricFamily<Histogram>> histograms GUARDED_BY(mu);

  template <class Metric>
  Metric& Find(std::map<std::string, MetricFamily<Metric>>& families, const std::string& name,
               const std::string& help, const Labels& labels) REQUIRES(mu) {
    MetricFamily<Metric>& family = families[name];
    if (family.help.empty()) family.help = help;
    std::shared_ptr<Metric>& member = family.members[LabelText(labels)];
    if (member == nullptr) member = std::make_shared<Metric>();
    return *member;
  }
};

Metrics::Metrics() : rep_(std::make_unique<Rep>()) {}
Metrics::~Metrics() = default;

Counter& Metrics::GetCounter(const std::string& name, const std::string& help,
                             const Labels& labels) {
  MutexLock lock(rep_->mu);
  return rep_->Find(rep_->counters, name, help, labels);
}

std::shared_ptr<Counter> Metrics::ShareCounter(const std::string& name, const std::string& help,
                                               const Labels& labels) {
  MutexLock lock(rep_->mu);
  MetricFamily<Counter>& family = rep_->counters[name];
  family.help = help;
  std::string text = LabelText(labels);
  std::shared_ptr<Counter>& member = family.members[text];
  if (member != nullptr) return member;
  std::shared_ptr<Counter> made = member = std::make_shared<Counter>();
  const auto gone = [&](const std::string& of) { return family.members[of].use_count() == 1; };
  auto too_many = std::ranges::count_if(family.shared, gone) - static_cast<int64_t>(kGoneKept);
  std::erase_if(family.shared, [&](const std::string& of) {
    if (too_many <= 0 || !gone(of)) return false;
    --too_many;
    family.members.erase(of);
    return true;
  });
  family.shared.push_back(std::move(text));
  return made;
}

Gauge& Metrics::GetGauge(const std::string& name, const std::string& help, const Labels& labels) {
  MutexLock lock(rep_->mu);
  return rep_->Find(rep_->gauges, name, help, labels);
}

Histogram& Metrics::GetHistogram(const std::string& name, const std::string& help,
                                 const Labels& labels) {
  MutexLock lock(rep_->mu);
  return rep_->Find(rep_->histograms, name, help, labels);
}

std::string Metrics::Render() const {
  MutexLock lock(rep_->mu);
  std::string text;
  RenderFamilies(rep_->counters, "counter", text);
  RenderUnderOldNames(rep_->counters, text);
  RenderFamilies(rep_->gauges, "gauge", text);
  RenderFamilies(rep_->histograms, "histogram", text);
  return text;
}

Metrics& ProcessMetrics() {
  static auto* const metrics = new Metrics;
  return *metrics;
}

}  // namespace penstock
