"""The documentation site, which ``make docs`` builds with Sphinx. A warning, such as one of a broken link, fails it."""

from __future__ import annotations

import importlib.util
import pydoc
from typing import Any

from pygments.lexers.special import TextLexer

import velocpy

project = "velocpy"
author = "the velocpy authors"
project_copyright = "the velocpy authors, Apache-2.0"
version = release = velocpy.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = f"velocpy {version}"
html_show_sphinx = False

# Links to a heading (page.md#heading) go by GitHub's names of headings.
myst_heading_anchors = 4

# `Name` in a docstring is a link to that object.
default_role = "any"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
# Signatures name aliases such as TierName, as the sources do, and take one line for each parameter.
autodoc_typehints = "signature"
python_use_unqualified_type_names = True
maximum_signature_line_length = 100
numpydoc_show_class_members = False
autosummary_generate = False


def plain_if_it_exists(app: Any, env: Any, node: Any, shown: Any) -> Any:
    """Show a name that exists but is not in the reference, such as a module, as plain text. Sphinx warns of others."""
    if node.get("reftype") != "any":
        return None
    target = node["reftarget"]
    if "." not in target and importlib.util.find_spec(target):
        return shown
    module, inside = node.get("py:module"), node.get("py:class")
    places = ["", f"{module}.", f"{module}.{inside}.", "velocpy."]
    return shown if any(pydoc.locate(place + target) is not None for place in places) else None


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("missing-reference", plain_if_it_exists)
    # The site loads no script from elsewhere, and shows the text of a diagram.
    app.add_lexer("mermaid", TextLexer)
