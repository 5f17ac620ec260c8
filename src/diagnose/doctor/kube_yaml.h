// How does an object of the Kubernetes API look as YAML?
//
// As `kubectl get -o yaml` shows it, so that findings can name lines and diffs can be read: block
// style, texts of several lines as blocks. Without what nobody has written: the status,
// managedFields, and the copy of itself that kubectl keeps in an annotation.
#pragma once

#include <string>
#include <string_view>

#include "codec/json.h"

namespace fathom {

// `object` as lists have it, without its kind.
std::string KubeObjectYaml(const Json& object, std::string_view api_version, std::string_view kind);

// Any document, with `indent` spaces in front of its lines.
void AppendYaml(std::string& out, const Json& value, size_t indent);

}  // namespace fathom
