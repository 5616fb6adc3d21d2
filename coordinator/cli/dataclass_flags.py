# SPDX-License-Identifier: Apache-2.0
"""A decorator for commands: each field of a dataclass parameter becomes a flag on the command line."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Any, get_type_hints


def expand_dataclass_parameters(command: Callable[..., None]) -> Callable[..., None]:
    """Return a typer command that has, instead of each dataclass parameter, one parameter for each of its fields."""
    hints = get_type_hints(command, include_extras=True)
    together: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}

    @wraps(command)
    def flattened(**given: Any) -> None:
        for name, kind in together.items():
            given[name] = kind(**{each.name: given.pop(each.name) for each in fields(kind)})
        command(**given)

    parameters = list(_flattened(inspect.signature(command), hints))
    signature = inspect.Signature(parameters)
    flattened.__signature__ = signature  # type: ignore[attr-defined] # which typer goes by
    flattened.__annotations__ = {each.name: each.annotation for each in parameters}
    return flattened


def _flattened(signature: inspect.Signature, hints: dict[str, Any]) -> Iterator[Parameter]:
    for name, parameter in signature.parameters.items():
        kind = hints[name]
        if not is_dataclass(kind):
            yield parameter.replace(annotation=kind, kind=Parameter.KEYWORD_ONLY)
            continue
        of_fields = get_type_hints(kind, include_extras=True)
        for each in fields(kind):
            yield Parameter(
                each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=of_fields[each.name]
            )
