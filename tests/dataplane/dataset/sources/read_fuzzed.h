// SPDX-License-Identifier: Apache-2.0
// Checks of every source on files of any bytes: reading ends, skipping finds as many places as
// reading, and a saved position reads on as before.
#pragma once

#include <string>
#include <vector>

#include "control/env/fake_files.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "penstock/check.h"
#include "penstock/dataset.h"
#include "penstock/tensor.h"

namespace penstock {

inline std::string PlaceText(NodeIterator& iterator) {
  const absl::StatusOr<std::optional<Element>> next = iterator.Next();
  if (!next.ok()) return next.status().ToString();
  if (!next->has_value()) return "end";
  std::string text;
  for (size_t i = 0; i < (*next)->size(); ++i) {
    const Tensor tensor = (*next)->tensor(i);
    if (tensor.dtype() == kString) {
      text += tensor.string();
    } else {
      text.append(static_cast<const char*>(tensor.raw()), tensor.byte_count());
    }
    text.push_back('|');
  }
  return text;
}

// Reads `dataset`, which has one file of `files`, up to `limit` places.
inline void ReadFuzzed(const Dataset& dataset, Files& files, int64_t limit = 300) {
  PENSTOCK_CHECK(dataset.status().ok());
  RunContext context;
  context.files = &files;
  const auto build = [&] { return BuildIterator(dataset, context); };
  auto reading = build();
  if (!reading.ok()) return;  // the file is not of this format
  std::vector<std::string> places, states;
  while (static_cast<int64_t>(places.size()) < limit) {
    states.push_back(SaveIterator(**reading, dataset).value());
    places.push_back(PlaceText(**reading));
    if (places.back() == "end") break;
  }
  if (places.back() == "end") {
    auto skipping = build();
    const absl::StatusOr<int64_t> passed = (*skipping)->Skip(limit);
    PENSTOCK_CHECK(passed.ok() && *passed + 1 == static_cast<int64_t>(places.size()));
  }
  for (size_t i = 0; i < states.size(); i += 1 + states.size() / 8) {
    auto restored = build();
    PENSTOCK_CHECK(RestoreIterator(**restored, dataset, states[i]).ok());
    PENSTOCK_CHECK(PlaceText(**restored) == places[i]);
  }
}

}  // namespace penstock
