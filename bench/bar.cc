// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "bench/limits/limits.h"

namespace penstock::bench {
namespace {

class Bar final : public Side {
 public:
  Bar(std::string name, double elements_per_s, int64_t element_bytes)
      : name_(std::move(name)),
        in_a_second_{.seconds = 1,
                     .elements = elements_per_s,
                     .bytes = std::llround(elements_per_s * static_cast<double>(element_bytes))} {}

  std::string name() const override { return name_; }
  const Roles& roles() const override { return roles_; }
  absl::StatusOr<Done> Read(double /*seconds*/) override { return in_a_second_; }

 private:
  const std::string name_;
  const Done in_a_second_;
  const Roles roles_;
};

}  // namespace

std::unique_ptr<Side> MakeBar(std::string name, double elements_per_s, int64_t element_bytes) {
  return std::make_unique<Bar>(std::move(name), elements_per_s, element_bytes);
}

}  // namespace penstock::bench
