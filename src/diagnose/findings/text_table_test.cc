#include "diagnose/findings/text_table.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "diagnose/findings/shown_text.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Table kTable{.title = "",
                   .columns = {"Name", "Tokens", "Where"},
                   .rows = {{{"router"}, {"16", Tone::kBad}, {"agg_router.yaml:9"}},
                            {{"engine"}, {"1,032"}, {"http://10.0.3.12:8000/server_info"}}}};

TEST(TextTable, AlignsTextLeftAndNumbersRight) {
  EXPECT_EQ(TextTable(kTable, 2, {}),
            "  Name    Tokens  Where\n"
            "  ─────────────────────────────────────────────────\n"
            "  router      16  agg_router.yaml:9\n"
            "  engine   1,032  http://10.0.3.12:8000/server_info\n");
}

TEST(TextTable, WrapsTheWidestColumnWhereThereIsNoRoom) {
  EXPECT_EQ(TextTable(kTable, 0, {.color = false, .width = 40}),
            "Name    Tokens  Where\n"
            "────────────────────────────────────────\n"
            "router      16  agg_router.yaml:9\n"
            "engine   1,032  http://10.0.3.12:8000/\n"
            "                server_info\n");
}

TEST(TextTable, IsAListWhereColumnsAreTooMany) {
  Table table{.title = "", .columns = {}, .rows = {{}}};
  for (int i = 0; i < 12; ++i) {
    table.columns.push_back("column " + std::to_string(i));
    table.rows[0].push_back({"value " + std::to_string(i), Tone::kPlain});
  }
  const std::string text = TextTable(table, 2, {.color = false, .width = 60});
  EXPECT_THAT(text, HasSubstr("  column 11: value 11\n"));
}

TEST(TextTable, KeepsToTheWidth) {
  Table table = kTable;
  table.rows.push_back({{"块块块块块块块块块块块块块"}, {std::string(200, '9')}, {"a b c"}});
  for (size_t width = 40; width < 140; ++width) {
    const std::string text = TextTable(table, 3, {.color = false, .width = width});
    for (const std::string_view line : SplitAny(text, "\n")) {
      EXPECT_LE(ColumnsOf(line), width) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
  }
}

TEST(TextTable, PaintsByToneOnlyWhereThereIsColour) {
  EXPECT_THAT(TextTable(kTable, 0, {.color = true, .width = 100}), HasSubstr("\x1b[31m16\x1b[0m"));
  EXPECT_THAT(TextTable(kTable, 0, {}), Not(HasSubstr("\x1b")));
}

TEST(TextTable, ShowsRowsThatAreTooShort) {
  EXPECT_EQ(TextTable({.title = "", .columns = {"a", "b"}, .rows = {{{"x"}}, {}}}, 0, {}),
            "a  b\n────\nx\n\n");
}

}  // namespace
}  // namespace fathom
