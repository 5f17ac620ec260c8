#include "gateway/request_fields.h"

#include "codec/json_scan.h"

namespace fathom {

Result<RequestFields> ReadRequestFields(std::string_view body) {
  RequestFields fields;
  JsonScanner scanner(body);
  for (;;) {
    TRY(const auto member, scanner.Next());
    if (!member) return fields;
    if (JsonKeyIs(member->key, "model")) {
      fields.model.clear();
      if (member->value == "null") continue;  // as good as none
      auto text = JsonText(member->value);
      if (!text) return Fail(Blame::kCaller, "'model' must be a string");
      fields.model = *std::move(text);
    } else if (JsonKeyIs(member->key, "stream")) {
      fields.stream = member->value == "true";
    }
  }
}

}  // namespace fathom
