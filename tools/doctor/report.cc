// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace penstock::doctor {
namespace {

namespace verbs = transfer::verbs;

constexpr size_t kColumns = 100;

// Returns `text` wrapped into lines after `label`. Further lines are indented by the label's
// length.
std::string Paragraph(const std::string& label, const std::string& text) {
  const std::string indent(label.size(), ' ');
  std::string lines, line = label;
  bool empty = true;  // whether the line has no word yet
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!empty && line.size() + 1 + word.size() > kColumns) {
      absl::StrAppend(&lines, line, "\n");
      line = indent;
      empty = true;
    }
    absl::StrAppend(&line, empty ? "" : " ", word);
    empty = false;
  }
  return absl::StrCat(lines, line, "\n");
}

std::string Count(int number, const char* what) {
  return absl::StrCat(number, " ", what, number == 1 ? "" : "s");
}

// Returns `text` in quotes. Bytes beyond ASCII are escaped one by one, because the name of a device
// need not be UTF-8.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<unsigned>(byte));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// Returns "[a,b]", where `write` makes the text of each value.
template <class Value, class Write>
std::string List(const std::vector<Value>& values, Write write) {
  std::vector<std::string> parts;
  for (const Value& value : values) parts.push_back(write(value));
  return absl::StrCat("[", absl::StrJoin(parts, ","), "]");
}

std::string FindingJson(const Finding& finding) {
  return absl::StrCat("{\"id\":", Quoted(finding.id),
                      ",\"severity\":", Quoted(std::string(SeverityName(finding.severity))),
                      ",\"what\":", Quoted(finding.what), ",\"why\":", Quoted(finding.why),
                      ",\"remedy\":", Quoted(finding.remedy), ",\"protocols\":",
                      List(finding.protocols, [](const std::string& name) { return Quoted(name); }),
                      ",\"blocks\":", finding.blocks ? "true" : "false", "}");
}

std::string GidJson(const verbs::Gid& gid) {
  constexpr const char* kTypes[] = {"ib", "roce_v1", "roce_v2"};  // index: GidType
  return absl::StrCat("{\"index\":", gid.index, ",\"address\":", Quoted(gid.address),
                      ",\"type\":\"", kTypes[static_cast<int>(gid.type)], "\"}");
}

std::string PortJson(const verbs::Port& port) {
  constexpr const char* kStates[] = {"down", "init", "armed", "active"};  // index: PortState
  const bool ethernet = port.link_layer == verbs::LinkLayer::kEthernet;
  return absl::StrCat(
      "{\"port\":", port.number, ",\"state\":\"", kStates[static_cast<int>(port.state)],
      "\",\"link_layer\":\"", ethernet ? "ethernet" : "infiniband",
      "\",\"active_mtu\":", port.active_mtu_bytes, ",\"max_mtu\":", port.max_mtu_bytes,
      ",\"gigabits_per_s\":", port.gigabits_per_s, ",\"gids\":", List(port.gids, GidJson), "}");
}

std::string DeviceJson(const verbs::Device& device) {
  return absl::StrCat(
      "{\"name\":", Quoted(device.name),
      ",\"error\":", device.status.ok() ? "null" : Quoted(std::string(device.status.message())),
      ",\"firmware\":", Quoted(device.firmware), ",\"ports\":", List(device.ports, PortJson), "}");
}

}  // namespace

std::string ReportText(const std::vector<Finding>& findings) {
  std::string amiss, well;
  int errors = 0, warnings = 0, notes = 0;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kOk) {
      well += Paragraph("  ", finding.what);
      continue;
    }
    errors += finding.severity == Severity::kError;
    warnings += finding.severity == Severity::kWarning;
    notes += finding.severity == Severity::kNote;
    absl::StrAppend(&amiss, std::string(SeverityName(finding.severity)), ": ", finding.id, "\n");
    amiss += Paragraph("  ", finding.what);
    amiss += Paragraph("  why: ", finding.why);
    amiss += Paragraph("  do:  ", finding.remedy);
    if (finding.blocks) {
      absl::StrAppend(&amiss, "  Until then ", absl::StrJoin(finding.protocols, ", "),
                      " does not work here.\n");
    }
    amiss += "\n";
  }
  if (!well.empty()) well = absl::StrCat("well:\n", well, "\n");
  return absl::StrCat(amiss, well, Count(errors, "error"), ", ", Count(warnings, "warning"), ", ",
                      Count(notes, "note"), "\n");
}

std::string ReportJson(const std::vector<Finding>& findings,
                       const std::vector<verbs::Device>& devices) {
  return absl::StrCat("{\"exit_code\":", ExitCode(findings),
                      ",\"findings\":", List(findings, FindingJson),
                      ",\"rdma_devices\":", List(devices, DeviceJson), "}\n");
}

}  // namespace penstock::doctor
