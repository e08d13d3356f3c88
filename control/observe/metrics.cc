// SPDX-License-Identifier: Apache-2.0
#include "control/observe/metrics.h"

#include <mutex>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// {a="b",c="d"}
std::string LabelText(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels) {
    absl::StrAppend(&text, text.empty() ? "{" : ",", key, "=\"", absl::CEscape(value), "\"");
  }
  if (!text.empty()) text += '}';
  return text;
}

// All of one name; the key is the label text.
template <class Metric>
struct Family {
  std::string help;
  std::map<std::string, Metric> members;
};

template <class Metric>
void RenderFamilies(const std::map<std::string, Family<Metric>>& families, const char* type,
                    std::string& text) {
  for (const auto& [name, family] : families) {
    absl::StrAppend(&text, "# HELP ", name, " ", family.help, "\n# TYPE ", name, " ", type, "\n");
    for (const auto& [labels, metric] : family.members) {
      absl::StrAppend(&text, name, labels, " ", metric.value(), "\n");
    }
  }
}

}  // namespace

struct Metrics::Rep {
  mutable std::mutex mu;
  std::map<std::string, Family<Counter>> counters;  // guarded by mu
  std::map<std::string, Family<Gauge>> gauges;      // guarded by mu

  template <class Metric>
  Metric& Find(std::map<std::string, Family<Metric>>& families, const std::string& name,
               const std::string& help, const Labels& labels) {
    std::lock_guard lock(mu);
    Family<Metric>& family = families[name];
    if (family.help.empty()) family.help = help;
    return family.members[LabelText(labels)];
  }
};

Metrics::Metrics() : rep_(std::make_unique<Rep>()) {}
Metrics::~Metrics() = default;

Counter& Metrics::GetCounter(const std::string& name, const std::string& help,
                             const Labels& labels) {
  return rep_->Find(rep_->counters, name, help, labels);
}

Gauge& Metrics::GetGauge(const std::string& name, const std::string& help, const Labels& labels) {
  return rep_->Find(rep_->gauges, name, help, labels);
}

std::string Metrics::Render() const {
  std::lock_guard lock(rep_->mu);
  std::string text;
  RenderFamilies(rep_->counters, "counter", text);
  RenderFamilies(rep_->gauges, "gauge", text);
  return text;
}

Metrics& ProcessMetrics() {
  static auto* const metrics = new Metrics;
  return *metrics;
}

}  // namespace penstock
