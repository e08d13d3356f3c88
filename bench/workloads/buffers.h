// SPDX-License-Identifier: Apache-2.0
// Opaque buffers, copied from a source into their slots at the worker and read at the trainer: the
// base of T1, T1-0 and S1.
#pragma once

#include <string_view>

#include "bench/limits/limits.h"
#include "bench/workload.h"

namespace penstock::bench {

class Buffers : public Workload {
 public:
  // `cold`: whether to copy from a source that is in no cache, else from a buffer made once.
  Buffers(std::string_view name, std::string_view question, Touch touch, bool cold,
          Words words = Words::kRandom)
      : name_(name), question_(question), touch_(touch), cold_(cold), words_(words) {}

  std::string_view name() const override { return name_; }
  std::string_view question() const override { return question_; }
  std::vector<int64_t> sizes() const override {
    return {4096, 65'536, 262'176, 1 << 20, 9'633'792, 58'720'256};
  }
  Dataset MakeDataset(const Setup& setup) const override;
  std::unique_ptr<Reader> MakeReader(const Setup& setup) const override;
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override;

 private:
  Load LoadOf(const Setup& setup) const;

  std::string_view name_, question_;
  Touch touch_;
  bool cold_;
  Words words_;
};

}  // namespace penstock::bench
