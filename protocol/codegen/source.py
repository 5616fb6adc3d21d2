# SPDX-License-Identifier: Apache-2.0
"""Collects lines of source with their indentation, and the Structs that they need."""

import re
from collections.abc import Iterator
from contextlib import contextmanager


class StructFormats:
    """The precompiled Structs of a module, each under a name made of its format."""

    def __init__(self) -> None:
        self._unpackers: set[str] = set()
        self._packers: set[str] = set()

    def add_unpacker(self, fmt: str) -> str:
        """Add a function that unpacks this format to the generated module; return its name."""
        self._unpackers.add(fmt)
        return f"_UNPACK_{_name(fmt)}"

    def add_packer(self, fmt: str) -> str:
        """Add a function that packs this format to the generated module; return its name."""
        self._packers.add(fmt)
        return f"_PACK_{_name(fmt)}"

    def make_definition_lines(self) -> Iterator[str]:
        """Yield the lines of the definitions."""
        for fmt in sorted(self._unpackers):
            types = f"Callable[[bytes, int], {row_type(fmt)}]"
            yield f'_UNPACK_{_name(fmt)}: Final[{types}] = Struct(">{fmt}").unpack_from'
        for fmt in sorted(self._packers):
            yield f'_PACK_{_name(fmt)}: Final[Callable[..., bytes]] = Struct(">{fmt}").pack'


class SourceWriter:
    """Collects the lines of a function with their indentation."""

    def __init__(self, structs: StructFormats) -> None:
        self.structs = structs
        self.lines: list[str] = []
        self._indent = ""

    def add_line(self, text: str) -> None:
        """Add one line at the present indentation."""
        self.lines.append(self._indent + text if text else "")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add `head`, and indent the lines that follow within the context."""
        self.add_line(head)
        self._indent += "    "
        yield
        self._indent = self._indent[:-4]


def _name(fmt: str) -> str:
    return fmt.replace("?", "t")  # the one format character that is no letter: a truth value


def row_type(fmt: str) -> str:
    """Return the type of the tuple that a format reads; compiled code unpacks a tuple of known types faster."""
    types = {"?": "bool", "s": "bytes"}
    return f"tuple[{', '.join(types.get(letter, 'int') for letter in re.findall('[a-zA-Z?]', fmt))}]"
