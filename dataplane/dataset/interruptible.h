// SPDX-License-Identifier: Apache-2.0
// Reading for those who have more to do than wait: a thread that hears signals.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "dataplane/memory/pool.h"
#include "penstock/dataset.h"
#include "penstock/iterator.h"

namespace penstock {

class InterruptibleIterator : public IteratorImpl {
 public:
  // As Next(), but nullopt while the element is not there by `until`: nothing is lost,
  // the next call waits for the same one. What is there already, and what is quickly
  // made here (see kManyQuick in iterator.cc), comes without another thread; then the
  // call may last as long as that one element takes.
  virtual std::optional<absl::StatusOr<std::optional<Element>>> NextBy(std::optional<int64_t> step,
                                                                       absl::Time until) = 0;
};

// What Dataset::MakeIterator() makes. `epoch`: which of the dataset's it is; not given, it is
// counted (epochs.h), which MakeIterator() leaves out where a seed is given. `output`: as for
// MakeIteratorInto() (iterator_output.h).
absl::StatusOr<std::unique_ptr<InterruptibleIterator>> MakeInterruptible(
    const Dataset& dataset, IteratorOptions options, std::optional<int64_t> epoch = std::nullopt,
    Pool* output = nullptr);

// Of a NodeIterator that may know that it need not wait. One thread at a time, as Next().
class ReadyHint {
 public:
  virtual ~ReadyHint() = default;
  // Whether Next() has what it gives: the element, the end or an error.
  virtual bool Ready() = 0;
};

}  // namespace penstock
