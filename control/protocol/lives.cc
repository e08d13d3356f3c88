// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/lives.h"

#include <algorithm>

namespace penstock::control {

Origin OriginOf(const Heard& heard, const std::vector<BegunLife>& lives) {
  if (heard.life.id == 0) return Origin::kNone;
  if (heard.life.journal != lives.back().life.journal) return Origin::kOther;
  const auto life = std::find_if(lives.begin(), lives.end(), [&](const BegunLife& begun) {
    return begun.life.id == heard.life.id;
  });
  const auto next = life == lives.end() ? lives.begin() : life + 1;
  if (next == lives.end()) return Origin::kHere;  // the present life
  const bool forgotten = life == lives.end() && heard.life.term < lives.front().life.term;
  if (life == lives.end() && !forgotten) return Origin::kBeyond;
  return heard.sequence < next->begins ? Origin::kHere : Origin::kBeyond;
}

}  // namespace penstock::control
