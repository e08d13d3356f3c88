// SPDX-License-Identifier: Apache-2.0
// Elements of one file, from front to back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "control/env/files.h"
#include "penstock/element.h"

namespace penstock {

class ElementReader {
 public:
  virtual ~ElementReader() = default;

  // The next element; nullopt at the end. An error takes the place of an
  // element; what follows is read on where that is possible, else the file ends
  // there.
  virtual absl::StatusOr<std::optional<Element>> Next() = 0;
  // Passes over the next element, examining no more of it than it must; false
  // at the end.
  virtual absl::StatusOr<bool> Skip() = 0;
  // Where in the file the next element begins.
  virtual int64_t position() const = 0;
};

// Opens a file at `position`, which is 0 or was a reader's position().
using MakeElementReader = std::function<absl::StatusOr<std::unique_ptr<ElementReader>>(
    std::unique_ptr<File> file, int64_t position)>;

}  // namespace penstock
