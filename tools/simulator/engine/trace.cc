// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/engine/trace.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/escaping.h"

namespace penstock::simulator {
namespace {

constexpr size_t kPrintedBytes = 256;  // of an entry

uint64_t Mix(uint64_t hash, uint64_t word) {
  const uint64_t product = (hash ^ word) * 0x9e3779b97f4a7c15;
  return product ^ (product >> 32);
}

// Mixes eight bytes at a time, because an entry is made for each switch of a run.
uint64_t Mix(uint64_t hash, std::string_view bytes) {
  hash = Mix(hash, bytes.size());
  while (!bytes.empty()) {
    uint64_t word = 0;
    const size_t part = std::min(bytes.size(), sizeof(word));
    std::memcpy(&word, bytes.data(), part);
    hash = Mix(hash, word);
    bytes.remove_prefix(part);
  }
  return hash;
}

}  // namespace

void Trace::Add(absl::Time when, std::string_view kind, uint64_t a, uint64_t b,
                std::string_view bytes) {
  hash_ = Mix(hash_, static_cast<uint64_t>(absl::ToUnixNanos(when)));
  hash_ = Mix(hash_, kind);
  hash_ = Mix(Mix(hash_, a), b);
  hash_ = Mix(hash_, bytes);
  ++entries_;
  if (out_ == nullptr) return;
  const std::string time = absl::FormatTime("%Y-%m-%d %H:%M:%E9S", when, absl::UTCTimeZone());
  std::fprintf(out_, "%s %.*s %llu %llu", time.c_str(), static_cast<int>(kind.size()), kind.data(),
               static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
  if (!bytes.empty()) {
    const std::string_view printed = bytes.substr(0, kPrintedBytes);
    std::fprintf(out_, " %zu bytes: %s", bytes.size(),
                 absl::CHexEscape({printed.data(), printed.size()}).c_str());
  }
  std::fputc('\n', out_);
}

}  // namespace penstock::simulator
