"""Make the types and the methods of the client from the OpenAPI document of the server.

Usage: generate.py OPENAPI FOLDER [--check]

It writes `types.py`, `_sync_methods.py` and `_async_methods.py` into the folder; with `--check` it writes nothing, and
fails when one of them is not what the document gives.
"""

from __future__ import annotations

import json
import keyword
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, cast

Schema = dict[str, Any]

WIDTH = 120
HEADER = '"""{title}\n\nMade by tools/generate.py from the OpenAPI document of the server; do not edit.\n"""\n'

# Paths that SDKs of the providers, browsers and MCP clients call, not this client. `client.py` has the export, which is
# read line by line.
LEFT_OUT = re.compile(r"^/(api/sessions|api/agents/model-calls/.*|api/workspaces/export|mcp|openapi\.json)$")
# Requests of which a second one has the same effect as the first; they are repeated after an unknown outcome.
IDEMPOTENT = {"reportAgentStatus"}
# Those that change nothing, though they are no GET.
READING = {"renderAgentPrompt"}
# How many seconds the server may ask another service before it answers.
ASKING = {"testWebhook": 15}
# Headers of requests that are arguments. The others belong to the transport.
ARGUMENT_HEADERS = {"If-Match", "If-None-Match"}
# Headers of responses that make an `Answer` of a value.
ANSWER_HEADERS = {"ETag", "Agent-Version", "Change-Cursor"}
# The function that reads an answer, by the types that it may have.
READERS = {
    frozenset({"object"}): "read_object",
    frozenset({"array"}): "read_list",
    frozenset({"array", "object"}): "read_object_or_list",
}
# Parameters of streams.
STREAM_PARAMETERS = {"status", "label"}


def main() -> None:
    """Write the files, or compare them with `--check`."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    document = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    folder = Path(arguments[1])
    stale: list[str] = []
    for name, text in files(document).items():
        path = folder / name
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    if stale:
        sys.exit(
            f"error: {', '.join(stale)} are not what the OpenAPI document gives: scripts/python-client.sh generate"
        )


def files(document: Schema) -> dict[str, str]:
    """Return the files by name."""
    made = {
        "types.py": types(document),
        "_sync_methods.py": methods(document, is_async=False),
        "_async_methods.py": methods(document, is_async=True),
    }
    return {name: formatted(text) for name, text in made.items()}


def formatted(text: str) -> str:
    """Return a file in the form that the linter of this project asks for."""
    command = [sys.executable, "-m", "ruff", "format", "--isolated", f"--line-length={WIDTH}", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


# Types.


def types(document: Schema) -> str:
    """Return the module of the types."""
    lines = [HEADER.format(title="The records and bodies of the API, as `TypedDict` classes.")]
    lines.append("from __future__ import annotations\n")
    lines.append("from typing import Any, Literal, TypeAlias, TypedDict\n")
    schemas: dict[str, Schema] = document["components"]["schemas"]
    for name, schema in schemas.items():
        lines.append(type_of(name, schema))
    return "\n".join(lines)


def type_of(name: str, schema: Schema) -> str:
    """Return the definition of one schema."""
    doc = schema.get("description", "")
    if "properties" in schema:
        return record(name, schema, doc)
    alternatives = schema.get("oneOf")
    if alternatives:
        members: list[str] = []
        records: list[str] = []
        for alternative in alternatives:
            kind: str = alternative["properties"]["kind"]["const"]
            member = name + "".join(part.capitalize() for part in kind.split("_"))
            records.append(record(member, alternative, f"A line of the kind `{kind}`."))
            members.append(member)
        return "\n".join([*records, f"{name} = {' | '.join(members)}\n{docstring(doc)}\n"])
    # Python reads the value of an alias at once, so what it names may not follow it: as a text, it may.
    text = annotation(schema)
    is_union = " | " in text
    return f'{name}: TypeAlias = "{text}"\n{docstring(doc)}\n' if is_union else f"{name} = {text}\n{docstring(doc)}\n"


def record(name: str, schema: Schema, doc: str) -> str:
    """Return an object as a class, or two where some members may be left out."""
    properties: dict[str, Schema] = schema["properties"]
    required = set(schema.get("required", []))
    if "workspace_id" in required and name.startswith("New"):
        # The client fills it in.
        required.discard("workspace_id")
    needed = {key: value for key, value in properties.items() if key in required}
    optional = {key: value for key, value in properties.items() if key not in required}
    if not needed:
        return typed_dict(name, optional, doc, "TypedDict", total=False)
    if not optional:
        return typed_dict(name, needed, doc, "TypedDict", total=True)
    base = f"{name}Required"
    return "\n".join(
        [
            typed_dict(base, needed, f"What `{name}` always has.", "TypedDict", total=True),
            typed_dict(name, optional, doc, base, total=False),
        ]
    )


def typed_dict(name: str, members: dict[str, Schema], doc: str, base: str, *, total: bool) -> str:
    """Return one class. Names that Python reserves need the functional form."""
    if any(keyword.iskeyword(key) for key in members):
        if base != "TypedDict":
            raise ValueError(f"{name}: a member that may be left out has a name that Python reserves")
        fields = ", ".join(f'"{key}": "{annotation(value)}"' for key, value in members.items())
        return f'{name} = TypedDict("{name}", {{{fields}}}{"" if total else ", total=False"})\n{docstring(doc)}\n'
    options = base if total else f"{base}, total=False"
    lines = [f"class {name}({options}):", textwrap.indent(docstring(doc), "    ")]
    for key, value in members.items():
        lines.append(f"    {key}: {annotation(value)}")
        if value.get("description"):
            lines.append(textwrap.indent(docstring(value["description"]), "    "))
    return "\n".join(lines) + "\n"


def annotation(schema: Schema) -> str:
    """Return the type of a value."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[1]
    if "const" in schema:
        return f"Literal[{schema['const']!r}]"
    if "enum" in schema:
        return f"Literal[{', '.join(repr(value) for value in schema['enum'])}]"
    if "anyOf" in schema:
        return union([annotation(part) for part in schema["anyOf"]])
    kinds: Any = schema.get("type")
    if isinstance(kinds, list):
        return union([annotation({**schema, "type": kind}) for kind in cast("list[str]", kinds)])
    if kinds == "array":
        return f"list[{annotation(schema['items'])}]"
    if kinds == "object":
        members: Any = schema.get("additionalProperties", True)
        return f"dict[str, {annotation(cast('Schema', members)) if isinstance(members, dict) else 'Any'}]"
    plain = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
    return plain.get(kinds or "", "Any")


def union(parts: list[str]) -> str:
    """Return one type of several."""
    unique = list(dict.fromkeys(part for part in parts if part != "None"))
    whole = " | ".join(unique)
    return f"{whole} | None" if "None" in parts and whole != "Any" else whole


def docstring(text: str) -> str:
    """Return a text as the documentation of what stands before it."""
    text = text.replace("\\", "\\\\").strip()
    paragraphs = [textwrap.fill(part, WIDTH - 8) for part in text.split("\n\n")]
    joined = "\n\n".join(paragraphs)
    return f'"""{joined}\n"""' if "\n" in joined or len(joined) > WIDTH - 16 else f'"""{joined}"""'


# Methods.


def methods(document: Schema, *, is_async: bool) -> str:
    """Return the module of the methods."""
    kind = "Async" if is_async else "Sync"
    sent = "await self.send" if is_async else "self.send"
    lines = [HEADER.format(title=f"The methods of the {'asynchronous' if is_async else 'synchronous'} client.")]
    lines.append("from __future__ import annotations\n")
    lines.append("from typing import TypeVar\n")
    lines.append("from . import types")
    lines.append("from .calls import Answer, Call, answer, read_list, read_object, read_object_or_list, read_success\n")
    lines.append('T = TypeVar("T")\n')
    lines.append(f'class {kind}Methods:\n    """The endpoints of the API. What differs is how a call is sent."""\n')
    lines.append(f"    {'async ' if is_async else ''}def send(self, call: Call[T]) -> T:")
    lines.append('        """Send a call, with retries, and read its response."""\n        raise NotImplementedError\n')
    for path, operations in document["paths"].items():
        if LEFT_OUT.match(path):
            continue
        for verb, operation in operations.items():
            if verb != "parameters":
                lines.append(method(document, path, verb.upper(), operation, sent, is_async=is_async))
    return "\n".join(lines)


def method(document: Schema, path: str, verb: str, operation: Schema, sent: str, *, is_async: bool) -> str:
    """Return the method of one operation."""
    positional: list[str] = []
    optional: list[str] = []
    query: list[str] = []
    headers: list[str] = []
    workspace = "none"
    for reference in operation.get("parameters", []):
        parameter = resolved(document, reference)
        name: str = parameter["name"]
        if parameter["in"] == "header":
            if name in ARGUMENT_HEADERS:
                argument = snake(name)
                optional.append(f"{argument}: str | None = None")
                headers.append(f'"{name}": {argument}')
            continue
        if name in STREAM_PARAMETERS and path == "/api/changes":
            continue
        argument = f"{name}_" if keyword.iskeyword(name) else name
        query.append(f'"{name}": {argument}')
        is_flag = set(parameter["schema"].get("enum", [])) == {"false", "true"}
        kind = "bool" if is_flag else "int" if parameter["schema"].get("type") == "integer" else "str"
        if name == "workspace_id":
            workspace = "required" if parameter.get("required") else "optional"
            optional.append("workspace_id: str | None = None")
        elif parameter.get("required"):
            positional.append(f"{argument}: {kind}")
        else:
            optional.append(f"{argument}: {kind} | None = None")
    body = operation.get("requestBody")
    if body:
        schema = body["content"]["application/json"]["schema"]
        name = annotation(schema)
        if name != "NoFields":
            if body.get("required"):
                positional.append(f"body: types.{name}")
            else:
                optional.insert(0, f"body: types.{name} | None = None")
            members = document["components"]["schemas"][name]
            if "workspace_id" in members.get("required", []):
                workspace = "body"
        else:
            body = None
    result, reader = returned(document, operation)
    signature = ", ".join(["self", *positional, *(["*", *optional] if optional else [])])
    call = [f'"{verb}"', f'"{path}"', reader, f"query={{{', '.join(query)}}}"]
    if headers:
        call.append(f"headers={{{', '.join(headers)}}}")
    if body:
        call.append("body=body")
    if workspace != "none":
        call.append(f'workspace="{workspace}"')
    if '"wait": wait' in query:
        call.append("patience=wait or 0")
    if operation["operationId"] in ASKING:
        call.append(f"patience={ASKING[operation['operationId']]}")
    if operation["operationId"] in IDEMPOTENT:
        call.append("is_idempotent=True")
    if operation["operationId"] in READING:
        call.append("is_read=True")
    text = f"{operation['summary']}.\n\n{operation.get('description', '')}"
    return "\n".join(
        [
            f"    {'async ' if is_async else ''}def {snake(operation['operationId'])}({signature}) -> {result}:",
            textwrap.indent(docstring(text), "        "),
            f"        return {sent}(Call({', '.join(call)}))\n",
        ]
    )


def returned(document: Schema, operation: Schema) -> tuple[str, str]:
    """Return the type of a successful answer, and the function that reads it."""
    success = next(response for status, response in operation["responses"].items() if status.startswith("2"))
    schema: Schema = success["content"]["application/json"]["schema"]
    name = annotation(schema)
    if name == "Success":
        return "None", "read_success"
    result = f"list[types.{annotation(schema['items'])}]" if schema.get("type") == "array" else f"types.{name}"
    reader = READERS[frozenset(json_types(document, schema))]
    if ANSWER_HEADERS & set(success.get("headers", {})):
        return f"Answer[{result}]", f"answer({reader})"
    return result, reader


def json_types(document: Schema, schema: Schema) -> set[str]:
    """Return the types that a value of this schema may have."""
    found = resolved(document, schema)
    if "anyOf" in found:
        return {kind for part in found["anyOf"] for kind in json_types(document, part)}
    return {found["type"]}


def resolved(document: Schema, reference: Schema) -> Schema:
    """Return what a reference points at."""
    if "$ref" not in reference:
        return reference
    found: Any = document
    for part in str(reference["$ref"]).removeprefix("#/").split("/"):
        found = found[part]
    return found


def snake(name: str) -> str:
    """Return a name in the form of Python's."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.replace("-", "_")).lower()


if __name__ == "__main__":
    main()
