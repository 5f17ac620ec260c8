#include "diagnose/sizing/nvidia_smi.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/text.h"

namespace fathom {
namespace {

using Readings = std::vector<GpuReading>;

constexpr std::string_view kBlanks = " \t";
constexpr uint64_t kMostTotalMiB = 1'000'000'000;
constexpr size_t kMaxColumns = 256;

// Takes a line off the front, without its end.
std::optional<std::string_view> NextLine(std::string_view& rest) {
  if (rest.empty()) return std::nullopt;
  const size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string Bounded(std::string_view text) { return std::string(text.substr(0, kMaxGpuName)); }

// "143771 MiB", "143771MiB", and "143771" where the heading has the unit.
std::optional<uint64_t> Memory(std::string_view text) {
  text = Trim(text);
  if (text.ends_with("MiB")) text = Trim(text.substr(0, text.size() - 3));
  const auto number = ParseDecimal(text);
  if (!number || *number > kMostTotalMiB) return std::nullopt;
  return *number << 20;
}

// "37 %", "37%", "37".
std::optional<double> Share(std::string_view text) {
  text = Trim(text);
  if (text.ends_with('%')) text = Trim(text.substr(0, text.size() - 1));
  const auto number = ParseDecimal(text);
  if (!number || *number > 100) return std::nullopt;
  return static_cast<double>(*number) / 100;
}

Result<void> Add(Readings& readings, GpuReading reading) {
  if (readings.size() == kMaxGpus) return Fail(Blame::kCaller, "more than {} GPUs", kMaxGpus);
  readings.push_back(std::move(reading));
  return {};
}

// The table: a row of a GPU has its index and name, then its bus; the row below has its memory.

// What stands between the bars of a row.
std::vector<std::string_view> CellsOf(std::string_view line) {
  if (!line.starts_with('|')) return {};
  std::vector<std::string_view> cells = SplitAny(line.substr(1, 512), "|");
  for (std::string_view& cell : cells) cell = Trim(cell);
  return cells;
}

bool IsBus(std::string_view cell) {
  const std::string_view first = cell.substr(0, cell.find(' '));
  return std::ranges::count(first, ':') == 2 && first.find('.') != std::string_view::npos;
}

// "0  NVIDIA H200                    On": the last word is the persistence mode.
std::optional<GpuReading> GpuRow(const std::vector<std::string_view>& cells) {
  if (cells.size() < 2 || !IsBus(cells[1])) return std::nullopt;
  const std::string_view cell = cells[0];
  const size_t index_end = std::min(cell.find_first_of(kBlanks), cell.size());
  if (!ParseDecimal(cell.substr(0, index_end))) return std::nullopt;
  const std::string_view rest = Trim(cell.substr(index_end));
  const size_t mode = rest.find_last_of(kBlanks);
  GpuReading reading;
  reading.gpu = Bounded(cell.substr(0, index_end));
  reading.name = Bounded(mode == std::string_view::npos ? rest : Trim(rest.substr(0, mode)));
  return reading;
}

void TakeMemoryRow(const std::vector<std::string_view>& cells, GpuReading& reading) {
  if (cells.size() < 3 || reading.total) return;
  const size_t slash = cells[1].find('/');
  if (slash == std::string_view::npos) return;
  reading.used = Memory(cells[1].substr(0, slash));
  reading.total = Memory(cells[1].substr(slash + 1));
  const size_t percent = cells[2].find('%');
  if (percent != std::string_view::npos) reading.busy = Share(cells[2].substr(0, percent));
}

Result<Readings> ReadTable(std::string_view text) {
  Readings readings;
  while (const auto line = NextLine(text)) {
    // Below are slices and processes, whose rows look alike.
    const bool below = line->starts_with("| MIG devices") || line->starts_with("| Processes");
    if (below) break;
    const auto cells = CellsOf(*line);
    if (auto reading = GpuRow(cells)) {
      TRY_VOID(Add(readings, *std::move(reading)));
    } else if (!readings.empty()) {
      TakeMemoryRow(cells, readings.back());
    }
  }
  return readings;
}

// -q: lines of "name : value" in sections, which are lines without a colon.

void TakeProperty(std::string_view section, std::string_view name, std::string_view value,
                  GpuReading& reading) {
  if (name == "Product Name") reading.name = Bounded(value);
  if (name == "Minor Number") reading.gpu = Bounded(value);
  if (section == "FB Memory Usage") {
    if (name == "Total") reading.total = Memory(value);
    if (name == "Used") reading.used = Memory(value);
    if (name == "Free") reading.free = Memory(value);
  }
  if (section == "Utilization" && EqualsIgnoreCase(name, "GPU")) reading.busy = Share(value);
}

Result<Readings> ReadProperties(std::string_view text) {
  Readings readings;
  std::string_view section;
  while (const auto line = NextLine(text)) {
    if (line->starts_with("GPU ")) {
      GpuReading reading;
      reading.gpu = Bounded(Trim(line->substr(4)));
      TRY_VOID(Add(readings, std::move(reading)));
      section = {};
      continue;
    }
    const size_t colon = line->find(':');
    if (colon == std::string_view::npos) {
      section = Trim(*line);
    } else if (!readings.empty()) {
      TakeProperty(section, Trim(line->substr(0, colon)), Trim(line->substr(colon + 1)),
                   readings.back());
    }
  }
  return readings;
}

// CSV: the heading names the columns.

std::vector<std::string_view> ColumnsOf(std::string_view line) {
  std::vector<std::string_view> columns;
  while (columns.size() < kMaxColumns) {
    const size_t comma = line.find(',');
    columns.push_back(Trim(line.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    line.remove_prefix(comma + 1);
  }
  return columns;
}

void TakeColumn(std::string_view heading, std::string_view value, GpuReading& reading) {
  const std::string_view name = heading.substr(0, heading.find(' '));
  if (name == "index") reading.gpu = Bounded(value);
  if (reading.gpu.empty() && (name == "uuid" || name == "gpu_uuid")) reading.gpu = Bounded(value);
  if (name == "name" || name == "gpu_name") reading.name = Bounded(value);
  if (name == "memory.total") reading.total = Memory(value);
  if (name == "memory.used") reading.used = Memory(value);
  if (name == "memory.free") reading.free = Memory(value);
  if (name == "utilization.gpu") reading.busy = Share(value);
}

bool IsHeading(const std::vector<std::string_view>& columns) {
  return std::ranges::any_of(columns, [](std::string_view column) {
    return column.starts_with("memory.total") || column.starts_with("memory.used") ||
           column.starts_with("memory.free");
  });
}

Result<Readings> ReadCsv(std::string_view text) {
  Readings readings;
  std::vector<std::string_view> heading;
  while (const auto line = NextLine(text)) {
    const auto columns = ColumnsOf(*line);
    if (IsHeading(columns)) {
      heading = columns;
    } else if (!heading.empty() && columns.size() == heading.size()) {
      GpuReading reading;
      for (size_t i = 0; i < columns.size(); ++i) TakeColumn(heading[i], columns[i], reading);
      // A line of something else.
      if (reading.total || reading.used || reading.free)
        TRY_VOID(Add(readings, std::move(reading)));
    }
  }
  return readings;
}

Result<Readings> ReadAnyForm(std::string_view text) {
  if (text.find("FB Memory Usage") != std::string_view::npos) return ReadProperties(text);
  if (text.find("MiB /") != std::string_view::npos) return ReadTable(text);
  return ReadCsv(text);
}

}  // namespace

Result<std::vector<GpuReading>> ReadNvidiaSmi(std::string_view text) {
  TRY(Readings readings, ReadAnyForm(text));
  if (!readings.empty()) return readings;
  return Fail(Blame::kCaller,
              "no GPU in it: the table of nvidia-smi, nvidia-smi -q or nvidia-smi "
              "--query-gpu=index,name,memory.total,memory.used --format=csv with its heading is "
              "looked for");
}

}  // namespace fathom
