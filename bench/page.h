// SPDX-License-Identifier: Apache-2.0
// The bench's results as an HTML page, made by a Python program (page/page.py). Measuring does not
// need Python.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::bench {

class PageMaker {
 public:
  // `gpu_figures`: file with the output of gpu_bench; "": none. FailedPrecondition, with the reason
  // and the way to make the page on another machine, if this machine cannot make it.
  static absl::StatusOr<PageMaker> Find(const std::string& gpu_figures);

  // Returns the page of `records` (record.h). Makes it even after an interrupt.
  absl::StatusOr<std::string> Make(const std::string& records) const;

 private:
  explicit PageMaker(std::vector<std::string> words) : words_(std::move(words)) {}
  static absl::StatusOr<std::string> Run(std::vector<std::string> words, const std::string& input);

  std::vector<std::string> words_;  // the program and its arguments
};

}  // namespace penstock::bench
