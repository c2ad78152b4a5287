"""Writes dashboard/src/api/schema.ts, the types of the REST API, from docs/openapi.json.

python -m tools.dashboardtypes
python -m tools.dashboardtypes --check    whether the file is what it would write
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
DESCRIPTION: Final = ROOT / "docs" / "openapi.json"
FILE: Final = ROOT / "dashboard" / "src" / "api" / "schema.ts"
HEAD: Final = "// Made by `make docs` from docs/openapi.json; do not edit.\n"
_PLAIN: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
_JSON: Final = "application/json"
Object = Mapping[str, Any]


def text(document: Object) -> str:
    """An interface for each schema, and what each operation takes and answers."""
    schemas = document["components"]["schemas"]
    parts = [HEAD, *(_interface(name, schema) for name, schema in sorted(schemas.items()))]
    parts.append("export interface Operations {\n" + "".join(_operations(document)) + "}\n")
    return "\n".join(parts)


def _interface(name: str, schema: Object) -> str:
    about = f"/** {schema['description']} */\n" if schema.get("description") else ""
    if "properties" not in schema:
        return f"{about}export type {name} = {_type(schema)};\n"
    return f"{about}export interface {name} {{\n{_fields(schema)}}}\n"


def _fields(schema: Object) -> str:
    needed = schema.get("required", ())
    return "".join(
        f"  {_key(name)}{'' if name in needed else '?'}: {_type(field)};\n"
        for name, field in schema.get("properties", {}).items()
    )


def _type(schema: Object) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " | ".join(dict.fromkeys(_type(one) for one in schema[word]))
    kind = schema.get("type")
    if kind == "array":
        return _array(schema)
    if kind == "object":
        return _object(schema)
    return _PLAIN.get(str(kind), "unknown")


def _array(schema: Object) -> str:
    if prefix := schema.get("prefixItems"):
        return f"[{', '.join(_type(one) for one in prefix)}]"
    items = _type(schema.get("items") or {})
    return f"({items})[]" if " " in items else f"{items}[]"


def _object(schema: Object) -> str:
    if "properties" in schema:
        return "{ " + _fields(schema).replace("\n", " ").strip() + " }"
    values = schema.get("additionalProperties")
    return f"Record<string, {_type(values) if isinstance(values, dict) else 'unknown'}>"


def _key(name: str) -> str:
    return name if name.replace("_", "a").isalnum() else json.dumps(name)


def _operations(document: Object) -> Iterator[str]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            query = _query(operation)
            answer = _answer(operation)
            yield f'  "{method.upper()} {path}": {{ query: {query}; answer: {answer} }};\n'


def _query(operation: Object) -> str:
    fields = [
        f"{_key(one['name'])}{'' if one.get('required') else '?'}: {_type(one['schema'])}"
        for one in operation["parameters"]
        if one["in"] == "query"
    ]
    return "{ " + "; ".join(fields) + " }" if fields else "Record<string, never>"


def _answer(operation: Object) -> str:
    kinds = [
        _type(answer["content"][_JSON]["schema"])
        for status, answer in operation["responses"].items()
        if status != "default" and _JSON in answer.get("content", {})
    ]
    return " | ".join(dict.fromkeys(kinds)) or "undefined"


def main(words: Sequence[str]) -> int:
    made = text(json.loads(DESCRIPTION.read_text()))
    if "--check" not in words:
        FILE.write_text(made)
        return 0
    if FILE.exists() and FILE.read_text() == made:
        return 0
    print(f"error: {FILE.relative_to(ROOT)} is not what docs/openapi.json says")
    print("\nhint: run make docs")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
