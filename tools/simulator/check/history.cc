// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/check/history.h"

#include <iterator>
#include <set>

namespace penstock::simulator {

void History::ContinueFrom(size_t elements) {
  std::set<ElementKey> has;
  for (size_t i = 0; i < got.size(); ++i) {
    const bool is_new = has.insert(got[i].key).second;
    if (i >= elements && !is_new) twice.push_back(got[i]);
  }
  const auto end_of_state = std::next(got.begin(), static_cast<ptrdiff_t>(elements));
  undone.insert(undone.end(), end_of_state, got.end());
  got.erase(end_of_state, got.end());
  gone.reset();
  ended.reset();
}

}  // namespace penstock::simulator
