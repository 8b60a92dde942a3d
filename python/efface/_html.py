"""Tables for notebooks: what matters first, the rest folded away."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

#: What a reader looks for, in this order.
_FIRST = ("claim", "bound", "relative_bound", "method", "outcome", "forgotten", "learned", "rows", "model", "kind")


def table(title: str, fields: Mapping[str, object]) -> str:
    """An HTML table of two columns: claim and bound first, and what is beside them in a fold. Empty fields are left out."""
    told = {name: value for name, value in fields.items() if value is not None and value != [] and value != {}}
    first = [name for name in _FIRST if name in told] or list(told)
    rest = [name for name in told if name not in first]
    page = f"<table><caption><b>{escape(title)}</b></caption><tbody>{_lines(told, first)}</tbody></table>"
    if rest:
        page += f"<details><summary>more</summary><table><tbody>{_lines(told, rest)}</tbody></table></details>"
    return page


def _lines(fields: Mapping[str, object], names: list[str]) -> str:
    style = "style='text-align:left'"
    return "".join(
        f"<tr><th {style}>{escape(name)}</th><td {style}>{_cell(fields[name])}</td></tr>" for name in names
    )


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return "<br>".join(f"{escape(str(name))}: {_cell(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return "<br>".join(_cell(inner) for inner in value)
    return escape(str(value))
