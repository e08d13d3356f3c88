// SPDX-License-Identifier: Apache-2.0
#include "tools/options.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/env/files_settings.h"
#include "control/settings/tls_settings.h"

namespace penstock::tools {
namespace {

void AddFlag(CLI::App& command, const std::string& section, const Setting& setting) {
  const std::string flag = setting.old_name == nullptr
                               ? absl::StrCat("--", setting.name)
                               : absl::StrCat("--", setting.name, ",--", setting.old_name);
  const std::string help = absl::StrCat(setting.help, " (", VariableOf(section, setting.name), ")");
  if (auto* const* on = std::get_if<bool*>(&setting.target)) {
    command.add_flag(flag, **on, help);
  } else if (auto* const* time = std::get_if<absl::Duration*>(&setting.target)) {
    absl::Duration* target = *time;
    command
        .add_option_function<int64_t>(
            flag, [target](int64_t ms) { *target = absl::Milliseconds(ms); }, help)
        ->check(CLI::NonNegativeNumber)
        ->default_str(absl::StrCat(absl::ToInt64Milliseconds(*target)));
  } else if (auto* const* words = std::get_if<std::vector<std::string>*>(&setting.target)) {
    command.add_option(flag, **words, help)->delimiter(',');
  } else {
    std::visit(
        [&](auto* target) {
          using T = std::remove_pointer_t<decltype(target)>;
          if constexpr (std::is_same_v<T, std::string> || std::is_integral_v<T>) {
            command.add_option(flag, *target, help)->capture_default_str();
          }
        },
        setting.target);
  }
}

// Returns the command's section in the settings file, such as "jobs_list".
std::string SectionOf(const CLI::App& command) {
  std::string section = command.get_name();
  for (const CLI::App* above = command.get_parent(); above->get_parent() != nullptr;
       above = above->get_parent()) {
    section = absl::StrCat(above->get_name(), "_", section);
  }
  return section;
}

void ThrowUnless(const absl::Status& settled) {
  if (!settled.ok()) throw CLI::ValidationError(std::string(settled.message()));
}

// Sets the settings without a flag from the environment and the settings file.
void SettleRest(const CLI::App& command, const std::vector<Setting>& settings,
                const std::string& path, const Environment& environment) {
  std::set<std::string> given;
  for (const Setting& setting : settings) {
    if (command.count(absl::StrCat("--", setting.name)) > 0) given.insert(setting.name);
  }
  ThrowUnless(Settle(SectionOf(command), settings, given, path, environment).status());
}

// Configures how this process reads remote files. These settings have no flags.
void SettleFiles(const std::string& path) {
  const absl::StatusOr<FilesConfig> config = ReadFilesConfig(path, ProcessEnvironment());
  ThrowUnless(config.ok() ? ConfigureFiles(*config) : config.status());
}

}  // namespace

std::vector<Setting> SettingsOf(DispatcherCall& call) {
  std::vector<Setting> rows = TlsSettingsOf(call.tls);
  rows.push_back(TokenSettingOf(call.tls));
  rows.insert(rows.begin(), {{"dispatcher-address", &call.address, kDispatcherAddressHelp},
                             {"timeout-ms", &call.timeout,
                              "Milliseconds for which to try to reach the dispatcher."}});
  return rows;
}

void AddOptions(CLI::App& command, std::vector<Setting> settings) {
  const std::string section = SectionOf(command);
  for (const Setting& setting : settings) AddFlag(command, section, setting);
  command.parse_complete_callback([&command, settings = std::move(settings)] {
    SettleRest(command, settings, "", [](const std::string& variable) {
      return variable == kFileVariable ? std::nullopt : ProcessEnvironment()(variable);
    });
  });
}

void AddServerOptions(CLI::App& command, std::vector<Setting> settings,
                      std::function<absl::Status(const std::string& path)> settle_more) {
  const std::string section = SectionOf(command);
  auto path = std::make_shared<std::string>();
  command.add_option("--config", *path,
                     absl::StrCat("Settings file; this command reads its section [", section,
                                  "]. (", kFileVariable, ")"));
  for (const Setting& setting : settings) AddFlag(command, section, setting);
  command.parse_complete_callback(
      [&command, path, settings = std::move(settings), settle_more = std::move(settle_more)] {
        SettleRest(command, settings, *path, ProcessEnvironment());
        SettleFiles(*path);
        if (settle_more) ThrowUnless(settle_more(*path));
      });
}

}  // namespace penstock::tools
