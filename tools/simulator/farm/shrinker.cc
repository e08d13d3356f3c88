// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/farm/shrinker.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tools/simulator/scenario.h"

namespace penstock::simulator {
namespace {

using Statement = std::vector<std::string>;  // its words
using Statements = std::vector<Statement>;

bool IsFault(const Statement& statement) {
  return statement[0] == "at" || statement[0] == "every";
}
bool HasSize(const Statement& statement) {
  return statement[0] == "workers" || statement[0] == "trainers" || statement[0] == "dataset";
}
// These are the frame of a run: without them, it is not smaller.
bool IsKept(const Statement& statement) {
  return statement[0] == "calm" || statement[0] == "expect" || statement[0] == "broken";
}
bool IsNumber(const std::string& word) {
  return std::all_of(word.begin(), word.end(), absl::ascii_isdigit);
}

// Returns the statements without comments, and without the seeds.
Statements Parse(const std::string& text) {
  Statements statements;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    Statement words =
        absl::StrSplit(line.substr(0, line.find('#')), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (!words.empty() && words[0] != "seeds") statements.push_back(std::move(words));
  }
  return statements;
}

std::string Print(const Statements& statements) {
  std::string text;
  for (const Statement& words : statements) absl::StrAppend(&text, absl::StrJoin(words, " "), "\n");
  return text;
}

class Shrinker {
 public:
  Shrinker(const Failing& failing, FindFailing find, int most_tries)
      : best_(failing), find_(find), tries_left_(most_tries), statements_(Parse(failing.text)) {
    best_.text = Print(statements_);
  }

  Failing Run() && {
    bool changed = true;
    while (changed && tries_left_ > 0) {
      changed = DropStatements(IsFault);
      changed |= DropFaults();
      changed |= ReduceNumbers();
      changed |= DropStatements(
          [](const Statement& s) { return !IsFault(s) && !IsKept(s) && !HasSize(s); });
      changed |= DropOptions();
    }
    return best_;
  }

 private:
  // Takes `statements` if they fail too.
  bool Try(Statements statements) {
    const std::string text = Print(statements);
    if (tries_left_ == 0 || !ParseScenario(text).ok()) return false;
    --tries_left_;
    std::optional<Failing> found = find_(text);
    if (!found.has_value()) return false;
    best_ = *std::move(found);
    statements_ = std::move(statements);
    return true;
  }

  bool DropStatements(absl::FunctionRef<bool(const Statement&)> may_drop) {
    bool changed = false;
    for (size_t i = statements_.size(); i-- > 0;) {
      if (!may_drop(statements_[i])) continue;
      Statements fewer = statements_;
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
      changed |= Try(std::move(fewer));
    }
    return changed;
  }

  // Drops single faults of "one of: A | B | C".
  bool DropFaults() {
    bool changed = false;
    for (size_t i = 0; i < statements_.size(); ++i) {
      if (!IsFault(statements_[i])) continue;
      const std::string line = absl::StrJoin(statements_[i], " ");
      for (size_t k = std::count(line.begin(), line.end(), '|') + 1; k-- > 0;) {
        changed |= DropFault(i, k);
      }
    }
    return changed;
  }

  // REQUIRES: statement `i` has a fault number `k`, counted from 0.
  bool DropFault(size_t i, size_t k) {
    const std::string line = absl::StrJoin(statements_[i], " ");
    const size_t list = line.find("one of: ");
    if (list == line.npos) return false;
    const size_t begin = list + std::string("one of: ").size();
    std::vector<std::string> faults = absl::StrSplit(line.substr(begin), " | ");
    if (faults.size() < 2) return false;
    faults.erase(faults.begin() + static_cast<ptrdiff_t>(k));
    Statements fewer = statements_;
    fewer[i] = absl::StrSplit(absl::StrCat(line.substr(0, faults.size() == 1 ? list : begin),
                                           absl::StrJoin(faults, " | ")),
                              ' ', absl::SkipEmpty());
    return Try(std::move(fewer));
  }

  // Drops words, such as "map" and "permits=3", without which the statement can be parsed.
  bool DropOptions() {
    bool changed = false;
    for (size_t i = 0; i < statements_.size(); ++i) {
      if (IsFault(statements_[i]) || IsKept(statements_[i])) continue;
      for (size_t k = statements_[i].size(); k-- > 1;) {
        Statements fewer = statements_;
        fewer[i].erase(fewer[i].begin() + static_cast<ptrdiff_t>(k));
        changed |= Try(std::move(fewer));
      }
    }
    return changed;
  }

  bool ReduceNumbers() {
    bool changed = false;
    for (size_t i = 0; i < statements_.size(); ++i) {
      if (!HasSize(statements_[i])) continue;
      for (size_t k = 1; k < statements_[i].size(); ++k) {
        if (IsNumber(statements_[i][k])) changed |= ReduceNumber(i, k);
      }
    }
    return changed;
  }

  // Tries 1, a half, and three quarters, as long as one of them fails too.
  bool ReduceNumber(size_t i, size_t k) {
    bool changed = false;
    for (bool smaller = true; smaller;) {
      smaller = false;
      int64_t number = 0;
      if (!absl::SimpleAtoi(statements_[i][k], &number)) break;
      for (const int64_t less : {int64_t{1}, number / 2, number - (number + 3) / 4}) {
        if (smaller || less < 1 || less >= number) continue;
        Statements fewer = statements_;
        fewer[i][k] = absl::StrCat(less);
        smaller = Try(std::move(fewer));
      }
      changed |= smaller;
    }
    return changed;
  }

  Failing best_;
  const FindFailing find_;
  int tries_left_;
  Statements statements_;  // of best_
};

}  // namespace

Failing Shrink(const Failing& failing, FindFailing find, int most_tries) {
  return Shrinker(failing, find, most_tries).Run();
}

std::string ToFile(const Failing& failing) {
  const std::string what = absl::StrReplaceAll(failing.what, {{"\n", " "}, {"\r", " "}});
  return absl::StrCat("# ", what, "\n", Print(Parse(failing.text)), "seeds ", failing.seed, "..",
                      failing.seed, "\n");
}

}  // namespace penstock::simulator
