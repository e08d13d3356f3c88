// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/window/keyed_windows.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "include/status_macros.h"

namespace penstock {

std::optional<int64_t> MaxAge(const Attrs& attrs) {
  const auto given = attrs.find("max_age");
  if (given == attrs.end()) return std::nullopt;
  return std::get<int64_t>(given->second);
}

int64_t RememberEvery(std::optional<int64_t> max_age) {
  return std::clamp<int64_t>(max_age.value_or(kRememberSeldom), 1, kRememberSeldom);
}

KeyedWindows::KeyedWindows(const BuildSite& site, std::unique_ptr<NodeIterator> input)
    : site_(site),
      drop_remainder_(site.attr<bool>("drop_remainder")),
      max_age_(MaxAge(site.node().attrs)),
      input_(std::move(input), RememberEvery(max_age_), PositionedInput::Holds::kElements) {}

absl::StatusOr<std::optional<Element>> KeyedWindows::Next() {
  absl::StatusOr<std::optional<Window>> next = NextWindow();
  if (!next.ok() && !EndsReading(next.status())) input_.Gave(input_.pulled() - 1);
  ASSIGN_OR_RETURN(const std::optional<Window> window, std::move(next));
  if (!window.has_value()) return std::nullopt;
  absl::StatusOr<Element> put = Put(window->key, window->elements);
  if (!put.ok()) return Annotate(put.status(), "in ", site_.name());
  return *std::move(put);
}

absl::StatusOr<int64_t> KeyedWindows::Skip(int64_t count) {
  for (int64_t passed = 0; passed < count; ++passed) {
    absl::StatusOr<std::optional<Window>> window = NextWindow();
    if (!window.ok() && EndsReading(window.status())) return window.status();
    if (window.ok() && !window->has_value()) return passed;
  }
  return count;
}

absl::StatusOr<std::optional<KeyedWindows::Window>> KeyedWindows::NextWindow() {
  while (true) {
    if (OldestIsTooOld()) return TakeOut(oldest_.begin()->second);
    if (ended_) {
      if (open_.empty() || drop_remainder_) {
        input_.GaveEnd();
        return std::nullopt;
      }
      return TakeOut(open_.begin()->first);
    }
    RETURN_IF_ERROR(site_.CheckCancelled());
    ASSIGN_OR_RETURN(std::optional<Element> next, input_.Next());
    ended_ = !next.has_value();
    if (ended_) continue;
    ASSIGN_OR_RETURN(const Window* window, Hold(*std::move(next), input_.pulled() - 1));
    if (static_cast<int64_t>(window->elements.size()) == SizeOf(window->key))
      return TakeOut(window->key);
  }
}

absl::StatusOr<KeyedWindows::Window*> KeyedWindows::Hold(Element element, int64_t number) {
  ASSIGN_OR_RETURN(const int64_t key, KeyOf(element, number));
  Window& window = open_[key];
  window.key = key;
  RETURN_IF_ERROR(window.charges.emplace_back().Add(site_, element));
  if (window.elements.empty()) oldest_[number] = key;
  window.elements.push_back(std::move(element));
  window.numbers.push_back(number);
  return &window;
}

KeyedWindows::Window KeyedWindows::TakeOut(int64_t key) {
  const auto place = open_.find(key);
  Window window = std::move(place->second);
  oldest_.erase(window.numbers.front());
  open_.erase(place);
  for (int64_t number : window.numbers) input_.Gave(number);
  input_.Release(Oldest());
  return window;
}

bool KeyedWindows::OldestIsTooOld() const {
  return max_age_.has_value() && !oldest_.empty() &&
         input_.pulled() - 1 - oldest_.begin()->first > *max_age_;
}

int64_t KeyedWindows::Oldest() const {
  return oldest_.empty() ? input_.pulled() : oldest_.begin()->first;
}

absl::Status KeyedWindows::Save(StateWriter& writer) {
  RETURN_IF_ERROR(input_.Save(writer, Oldest()));
  writer.WriteInt(input_.pulled());
  std::vector<int64_t> waiting;
  for (const auto& [key, window] : open_)
    waiting.insert(waiting.end(), window.numbers.begin(), window.numbers.end());
  std::sort(waiting.begin(), waiting.end());
  writer.WriteUnsigned(waiting.size());
  int64_t before = Oldest();
  for (int64_t number : waiting) {
    writer.WriteUnsigned(number - before);
    before = number;
  }
  return absl::OkStatus();
}

absl::Status KeyedWindows::Restore(StateReader& reader) {
  RETURN_IF_ERROR(input_.Restore(reader));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  ASSIGN_OR_RETURN(const int64_t pulled,
                   reader.ReadIntIn(input_.pulled(), kMost, "the number of elements read"));
  ASSIGN_OR_RETURN(const uint64_t waiting, reader.ReadUnsigned());
  int64_t number = input_.pulled();
  for (uint64_t i = 0; i < waiting; ++i) {
    ASSIGN_OR_RETURN(const uint64_t step, reader.ReadUnsigned());
    if (step >= static_cast<uint64_t>(pulled - number))
      return absl::DataLossError("a waiting element has not been read yet");
    number += static_cast<int64_t>(step);
    RETURN_IF_ERROR(input_.PassTo(number));
    ASSIGN_OR_RETURN(std::optional<Element> next, input_.Next());
    if (!next.has_value())
      return absl::DataLossError("an element that was waiting no longer exists");
    ASSIGN_OR_RETURN(const Window* window, Hold(*std::move(next), number));
    if (static_cast<int64_t>(window->elements.size()) >= SizeOf(window->key))
      return absl::DataLossError("more elements are waiting than there is room for");
  }
  return input_.PassTo(pulled);
}

std::vector<AttrRule> WindowRules() {
  return {{"drop_remainder", AttrType::kBool}, {"max_age", AttrType::kInt, false}};
}

Attrs WindowAttrs(bool drop_remainder, std::optional<int64_t> max_age) {
  Attrs attrs = {{"drop_remainder", drop_remainder}};
  if (max_age.has_value()) attrs["max_age"] = *max_age;
  return attrs;
}

absl::Status CheckMaxAge(const Attrs& attrs) {
  const std::optional<int64_t> max_age = MaxAge(attrs);
  if (max_age.value_or(0) >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("max_age must be 0 or more, not ", *max_age));
}

absl::Status CheckWindowAttrs(const Attrs& attrs) {
  RETURN_IF_ERROR(CheckMaxAge(attrs));
  if (!MaxAge(attrs).has_value() || !Get<bool>(attrs, "drop_remainder")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "max_age emits partial batches, which drop_remainder forbids; set only one of them");
}

std::string RestoresFrom(const Dataset::Node& node) {
  const std::optional<int64_t> max_age = MaxAge(node.attrs);
  if (!max_age.has_value())
    return "restores from the oldest element waiting, however far back (max_age bounds it)";
  int64_t back;
  if (__builtin_add_overflow(*max_age, RememberEvery(max_age), &back))
    back = std::numeric_limits<int64_t>::max();
  return absl::StrCat("restores from the oldest element waiting, reading at most ", back,
                      " inputs again");
}

}  // namespace penstock
