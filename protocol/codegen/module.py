# SPDX-License-Identifier: Apache-2.0
"""Renders the module of one API: imports, Structs, classes, functions, and the schema with its codecs."""

import re
from collections.abc import Callable, Iterator
from functools import partial

from protocol.apis import ApiKey
from protocol.codegen.decoder import DecoderWriter, is_decoded_in_steps
from protocol.codegen.encoder import EncoderWriter
from protocol.codegen.message_classes import NAMED, render_classes
from protocol.codegen.schema import Message, load
from protocol.codegen.source import SourceWriter, StructFormats

HEADER = """\
# SPDX-License-Identifier: Apache-2.0
# Generated from Apache Kafka's message schemas by `python -m protocol.codegen`. Do not edit.
# fmt: off
"""

_WIRE = (
    "NULL_INT16", "NULL_INT32", "PACK_INT32", "UNPACK_INT32S", "UVARINT", "ZERO_UUID", "array_struct",
    "bad_count_error", "bad_length_error", "item_limit_error", "pack_bytes", "pack_compact_bytes",
    "pack_compact_string", "pack_int32", "pack_partition_error", "pack_string", "pack_tagged_partition_error",
    "pack_uvarint", "read_compact_bytes", "read_compact_count", "read_compact_nullable_string",
    "read_compact_string", "skip_tags", "text_at",
)  # fmt: skip


def render_api(api: str) -> str:
    """Return the source of the module for an API, for example "Heartbeat"."""
    request, response = load(f"{api}Request"), load(f"{api}Response")
    structs = StructFormats()
    functions: list[str] = []
    for message in (request, response):
        functions += _functions(message, structs)
    classes = [*render_classes(request), *render_classes(response)]
    table = list(_table(request, response))
    body = "\n".join([*structs.make_definition_lines(), "", "", *classes, *functions, *table]) + "\n"
    first, last = request.versions.min, request.versions.max
    doc = f'"""{api} v{first}-v{last}: the request and the response, both ways."""\n\n'
    return HEADER + doc + "\n".join(_imports(body)) + "\n\n" + body


def _functions(message: Message, structs: StructFormats) -> Iterator[str]:
    kind = "request" if message.name.endswith("Request") else "response"
    directions: list[tuple[str, str, str, Callable[..., DecoderWriter | EncoderWriter]]] = [
        (f"decode_{kind}", "", f"(buf: bytes, pos: int) -> {message.name}:", DecoderWriter),
        (f"encode_{kind}", "", f"(message: {message.name}) -> bytes:", EncoderWriter),
    ]
    if is_decoded_in_steps(message):
        returned = f"Generator[None, None, {message.name}]"
        signature = f"(buf: bytes, pos: int) -> {returned}:"
        directions.append((f"decode_{kind}", "_in_steps", signature, partial(DecoderWriter, in_steps=True)))
    for name, suffix, signature, emitter in directions:
        written: dict[str, int] = {}
        for version in range(message.versions.min, message.versions.max + 1):
            source = SourceWriter(structs)
            with source.block(f"def {name}_v{version}{suffix}{signature}"):
                emitter(source, version, flexible=version in message.flexible).write_function_body(message)
            same = written.setdefault("\n".join(source.lines[1:]), version)
            if same != version:
                yield f"{name}_v{version}{suffix} = {name}_v{same}{suffix}"
            else:
                yield from source.lines
            yield ""
            yield ""


def _table(request: Message, response: Message) -> Iterator[str]:
    types = f"[{request.name}, {response.name}]"
    yield f"CODECS: Final[dict[int, Codec{types}]] = {{"
    for version in range(request.versions.min, request.versions.max + 1):
        names = ("decode_request", "encode_response", "decode_response", "encode_request")
        values = [f"{name}_v{version}" for name in names] + [str(version in request.flexible)]
        if is_decoded_in_steps(request):
            values.append(f"decode_request_v{version}_in_steps")
        yield f"    {version}: Codec({', '.join(values)}),"
    yield "}"
    yield ""
    key = f"ApiKey.{ApiKey(request.api_key).name}"
    yield f"SCHEMA: Final = ApiSchema({key}, {request.name}, {response.name}, CODECS)"


def _imports(body: str) -> Iterator[str]:
    used = set(re.findall(r"\w+", body))
    from_abc = [name for name in ("Callable", "Generator") if name in used]
    yield f"from collections.abc import {', '.join(from_abc)}"
    from_struct = [name for name in ("Struct", "error") if name in used]
    yield f"from struct import {', '.join(from_struct)}"
    yield f"from typing import {'Any, ' if 'Any' in used else ''}Final"
    yield ""
    yield "from protocol.apis import ApiKey"
    yield "from protocol.codec import ApiSchema, Codec"
    yield f"from protocol.compiled_struct import {'EMPTY, ' if 'EMPTY' in used else ''}FieldsValue"
    yield f"from protocol.errors import Truncated{', UnexpectedNull' if 'UnexpectedNull' in used else ''}"
    if "int32_at" in used:
        yield "from protocol.fixed_integers import int32_at"
    yield "from protocol.mypyc_shim import mypyc_attr"
    names = sorted({name for name in NAMED.values() if name in used})
    if names:
        yield f"from protocol.newtypes import {', '.join(names)}"
    rows = [name for name in ("EncodedRows", "read_rows_if_uniform") if name in used]
    if rows:
        yield f"from protocol.rows import {', '.join(rows)}"
    wire = [name for name in _WIRE if name in used]
    if wire:
        yield "from protocol.wire import ("
        yield from (f"    {name}," for name in wire)
        yield ")"


def render_package(apis: dict[str, str]) -> str:
    """Return the source of the package's `__init__`, with all classes; `apis` is API → module name."""
    lines = [
        '"""Flat codecs of the messages that a coordinator handles most."""',
        "",
        "from typing import Any, Final",
        "",
        "from protocol.codec import ApiSchema",
    ]
    modules = sorted(apis.values())
    lines += ["from protocol.hot import (", *(f"    {module}," for module in modules), ")"]
    names: list[str] = []
    for api, module in sorted(apis.items(), key=lambda item: item[1]):
        classes = sorted(_class_names(api))
        lines += [f"from protocol.hot.{module} import (", *(f"    {name}," for name in classes), ")"]
        names += classes
    lines += ["", "__all__ = [", *(f'    "{name}",' for name in ("SCHEMAS", *sorted(names))), "]", ""]
    lines += ["# by API key", "SCHEMAS: Final[dict[int, ApiSchema[Any, Any]]] = {"]
    lines += [f"    {module}.SCHEMA.key: {module}.SCHEMA," for module in modules]
    return HEADER + "\n".join(lines) + "\n}\n"


def _class_names(api: str) -> Iterator[str]:
    for kind in ("Request", "Response"):
        for line in render_classes(load(api + kind)):
            if line.startswith("class "):
                yield line.removeprefix("class ").partition("(")[0]
