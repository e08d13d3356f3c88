// SPDX-License-Identifier: Apache-2.0
// Elements gathered by a key until a window of them is full: what GroupByWindow
// and BucketBySequenceLength do.
//
// A position is where the input stood at the oldest element waiting, and the
// numbers of those that wait: they are read again from there, the others passed
// over. Full windows are given out as they fill; at the end of the input the
// rest, by ascending key.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/build_site.h"
#include "dataplane/dataset/registry.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "penstock/element.h"

namespace penstock {

class KeyedWindows : public NodeIterator {
 public:
  // By the attributes of WindowRules().
  KeyedWindows(const BuildSite& site, std::unique_ptr<NodeIterator> input);

  absl::StatusOr<std::optional<Element>> Next() final;
  absl::StatusOr<int64_t> Skip(int64_t count) final;
  absl::Status Save(StateWriter& writer) final;
  absl::Status Restore(StateReader& reader) final;

 protected:
  // The key of the window that element number `number` goes to. An error stands
  // in the element's place.
  virtual absl::StatusOr<int64_t> KeyOf(const Element& element, int64_t number) = 0;
  virtual int64_t SizeOf(int64_t key) const = 0;  // elements of a full window, at least 1
  virtual absl::StatusOr<Element> Put(int64_t key, absl::Span<const Element> elements) = 0;

  const BuildSite site_;

 private:
  struct Window {
    int64_t key = 0;
    std::vector<Element> elements;
    std::vector<int64_t> numbers;
  };

  // The next window that is full, has waited too long or is left over; nullopt
  // at the end. Errors stand in the place of elements.
  absl::StatusOr<std::optional<Window>> NextWindow();
  // Puts an element into its window, which is then perhaps full.
  absl::StatusOr<Window*> Hold(Element element, int64_t number);
  Window TakeOut(int64_t key);
  bool OldestIsTooOld() const;
  int64_t Oldest() const;  // number of the oldest element waiting, else of the next one

  const bool drop_remainder_;
  const std::optional<int64_t> max_age_;
  PositionedInput input_;
  bool ended_ = false;
  std::map<int64_t, Window> open_;     // by key
  std::map<int64_t, int64_t> oldest_;  // first element's number in each: its key
};

// "drop_remainder" and, where it was given, "max_age".
std::vector<AttrRule> WindowRules();
Attrs WindowAttrs(bool drop_remainder, std::optional<int64_t> max_age);
// InvalidArgument names the attribute.
absl::Status CheckWindowAttrs(const Attrs& attrs);
// Nodes that hold elements by key, with or without windows: what "max_age" says,
// and how far apart their input's positions are remembered.
std::optional<int64_t> MaxAge(const Attrs& attrs);
int64_t RememberEvery(std::optional<int64_t> max_age);
absl::Status CheckMaxAge(const Attrs& attrs);
// How far back such a node restores, for Explain().
std::string RestoresFrom(const Dataset::Node& node);

}  // namespace penstock
