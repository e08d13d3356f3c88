// SPDX-License-Identifier: Apache-2.0
// Collects elements by key until a window is full, for GroupByWindow and BucketBySequenceLength.
//
// A position is the input's position at the oldest waiting element, and the numbers of the waiting
// elements. To restore it, the input is read again from this position, and elements that were not
// waiting are skipped. Windows are returned when they are full. At the end of the input the
// remaining windows are returned by ascending key.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/registry.h"
#include "dataplane/dataset/transforms/buffer_charge.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "penstock/element.h"

namespace penstock {

class KeyedWindows : public NodeIterator {
 public:
  // Uses the attributes of WindowRules().
  KeyedWindows(const BuildSite& site, std::unique_ptr<NodeIterator> input);

  absl::StatusOr<std::optional<Element>> Next() final;
  absl::StatusOr<int64_t> Skip(int64_t count) final;
  absl::Status Save(StateWriter& writer) final;
  absl::Status Restore(StateReader& reader) final;

 protected:
  // The key of the window for element `number`. An error takes the element's place.
  virtual absl::StatusOr<int64_t> KeyOf(const Element& element, int64_t number) = 0;
  virtual int64_t SizeOf(int64_t key) const = 0;  // elements of a full window, ≥ 1
  virtual absl::StatusOr<Element> Put(int64_t key, absl::Span<const Element> elements) = 0;

  const BuildSite site_;

 private:
  struct Window {
    int64_t key = 0;
    std::vector<Element> elements;
    std::vector<int64_t> numbers;
    std::vector<BufferCharge> charges;
  };

  // The next window that is full, has waited too long or remains at the end; nullopt at the end. An
  // error takes the place of an element.
  absl::StatusOr<std::optional<Window>> NextWindow();
  // Puts an element into its window. Returns the window, which may be full now.
  absl::StatusOr<Window*> Hold(Element element, int64_t number);
  Window TakeOut(int64_t key);
  bool OldestIsTooOld() const;
  int64_t Oldest() const;  // number of the oldest waiting or, if none waits, of the next element

  const bool drop_remainder_;
  const std::optional<int64_t> max_age_;
  PositionedInput input_;
  bool ended_ = false;
  std::map<int64_t, Window> open_;     // by key
  std::map<int64_t, int64_t> oldest_;  // number of each window's first element -> key
};

// The rules for "drop_remainder" and the optional "max_age".
std::vector<AttrRule> WindowRules();
Attrs WindowAttrs(bool drop_remainder, std::optional<int64_t> max_age);
// InvalidArgument names the attribute.
absl::Status CheckWindowAttrs(const Attrs& attrs);
// For nodes that hold elements by key, with or without windows: the value of "max_age", and the
// distance between remembered positions of the input.
std::optional<int64_t> MaxAge(const Attrs& attrs);
int64_t RememberEvery(std::optional<int64_t> max_age);
absl::Status CheckMaxAge(const Attrs& attrs);
// Describes for Explain() how far back such a node restores.
std::string RestoresFrom(const Dataset::Node& node);

}  // namespace penstock
