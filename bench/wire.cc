// SPDX-License-Identifier: Apache-2.0
#include "bench/wire.h"

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

using nlohmann::json;

template <class T>
bool Fits(const json& value) {
  if constexpr (std::is_same_v<T, std::string>) return value.is_string();
  if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
  if constexpr (std::is_integral_v<T>) return value.is_number_integer();
  return value.is_number();
}

template <class T>
absl::Status Read(const json& object, const char* field, T& into) {
  const auto found = object.find(field);
  if (found == object.end() || !Fits<T>(*found)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a line between bench and reader has no valid \"", field, "\""));
  }
  into = found->template get<T>();
  return absl::OkStatus();
}

}  // namespace

json ToJson(const Setup& setup) {
  return {{"workload", setup.workload},
          {"protocol", setup.protocol},
          {"element_bytes", setup.element_bytes},
          {"workers", setup.workers},
          {"consumers", setup.consumers},
          {"consumer", setup.consumer},
          {"coordinated", setup.coordinated},
          {"last", setup.last},
          {"device", setup.device},
          {"window_s", setup.window_s},
          {"source_bytes", setup.source_bytes},
          {"compress", setup.compress},
          {"service", setup.service},
          {"scratch", setup.scratch}};
}

absl::StatusOr<Setup> SetupOf(const json& json) {
  Setup setup;
  RETURN_IF_ERROR(Read(json, "workload", setup.workload));
  RETURN_IF_ERROR(Read(json, "protocol", setup.protocol));
  RETURN_IF_ERROR(Read(json, "element_bytes", setup.element_bytes));
  RETURN_IF_ERROR(Read(json, "workers", setup.workers));
  RETURN_IF_ERROR(Read(json, "consumers", setup.consumers));
  RETURN_IF_ERROR(Read(json, "consumer", setup.consumer));
  RETURN_IF_ERROR(Read(json, "coordinated", setup.coordinated));
  RETURN_IF_ERROR(Read(json, "last", setup.last));
  RETURN_IF_ERROR(Read(json, "device", setup.device));
  RETURN_IF_ERROR(Read(json, "window_s", setup.window_s));
  RETURN_IF_ERROR(Read(json, "source_bytes", setup.source_bytes));
  RETURN_IF_ERROR(Read(json, "compress", setup.compress));
  RETURN_IF_ERROR(Read(json, "service", setup.service));
  RETURN_IF_ERROR(Read(json, "scratch", setup.scratch));
  return setup;
}

json ToJson(const InStep& in_step) {
  return {{"skew_p50_us", in_step.skew_p50_us},
          {"skew_p99_us", in_step.skew_p99_us},
          {"spread_p50", in_step.spread_p50},
          {"spread_p99", in_step.spread_p99}};
}

json ToJson(const Done& done) {
  json line = {{"seconds", done.seconds}, {"elements", done.elements}, {"bytes", done.bytes},
               {"p50_us", done.p50_us},   {"p99_us", done.p99_us},     {"max_us", done.max_us},
               {"shares", done.shares}};
  if (done.in_step.has_value()) line.update(ToJson(*done.in_step));
  if (done.shared > 0) line.update({{"shared", done.shared}, {"copied", done.copied}});
  return line;
}

absl::StatusOr<Done> DoneOf(const json& json) {
  Done done;
  RETURN_IF_ERROR(Read(json, "seconds", done.seconds));
  RETURN_IF_ERROR(Read(json, "elements", done.elements));
  RETURN_IF_ERROR(Read(json, "bytes", done.bytes));
  RETURN_IF_ERROR(Read(json, "p50_us", done.p50_us));
  RETURN_IF_ERROR(Read(json, "p99_us", done.p99_us));
  RETURN_IF_ERROR(Read(json, "max_us", done.max_us));
  if (json.contains("skew_p50_us")) {
    InStep& in_step = done.in_step.emplace();
    RETURN_IF_ERROR(Read(json, "skew_p50_us", in_step.skew_p50_us));
    RETURN_IF_ERROR(Read(json, "skew_p99_us", in_step.skew_p99_us));
    RETURN_IF_ERROR(Read(json, "spread_p50", in_step.spread_p50));
    RETURN_IF_ERROR(Read(json, "spread_p99", in_step.spread_p99));
  }
  if (json.contains("shared")) {
    RETURN_IF_ERROR(Read(json, "shared", done.shared));
    RETURN_IF_ERROR(Read(json, "copied", done.copied));
  }
  if (const auto shares = json.find("shares"); shares != json.end() && shares->is_array()) {
    for (const auto& share : *shares) {
      if (share.is_number_integer()) done.shares.push_back(share.get<int64_t>());
    }
  }
  return done;
}

absl::StatusOr<json> ParseAnswer(const std::string& line) {
  json answer = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) {
    return absl::InternalError(absl::StrCat("a reader's line is not a JSON object: ", line));
  }
  if (const auto error = answer.find("error"); error != answer.end() && error->is_string()) {
    const auto wrong = answer.find("data_loss");
    return wrong != answer.end() && *wrong == true ? absl::DataLossError(error->get<std::string>())
                                                   : absl::AbortedError(error->get<std::string>());
  }
  return answer;
}

}  // namespace penstock::bench
