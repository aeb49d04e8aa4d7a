"""Container components that are no container: any object that a step may be.

A component of the image ``lockstep/object`` makes no pod. Its last argument is the manifest, as
YAML or JSON; before it stand ``--action``, ``--success``, ``--failure``, ``--output NAME=CEL``.
"""

from __future__ import annotations

from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.compat.kfp import placeholders
from lockstep.compat.translation import Refused

IMAGE: Final = "lockstep/object"
_OPTIONS: Final = ("--action", "--success", "--failure", "--output")


def is_object(container: Json) -> bool:
    """Tell whether a container component stands for an object."""
    image = str(container.get("image", "")).partition(":")[0]
    return image == IMAGE or image.endswith(f"/{IMAGE}")


def object_template(container: Json, component: Json, at: str) -> Json:
    """Return what makes the object of a component.

    Raises:
        Refused: when an option or the manifest makes no sense.
    """
    words = [*(container.get("command") or []), *(container.get("args") or [])]
    found: Json = {}
    outputs: Json = {}
    while len(words) > 1:
        option, value, *words = words
        if option not in _OPTIONS:
            raise Refused(f"{at}.container.args", option, f"known are {', '.join(_OPTIONS)}")
        if option == "--output":
            name, equals, code = value.partition("=")
            if not equals:
                raise Refused(f"{at}.container.args", value, "write --output NAME=EXPRESSION")
            outputs[name] = "${{ " + code + " }}"
        else:
            found[option.removeprefix("--")] = value
    if not words:
        raise Refused(f"{at}.container.args", None, "the last argument must be the manifest")
    found["object"] = _manifest(words[0], component, at)
    given = (component.get("outputDefinitions") or {}).get("parameters") or {}
    for name in given:
        if name not in outputs:
            raise Refused(f"{at}.container.args", None, f"give --output {name}=EXPRESSION")
    return {"object": found, "outputs": outputs}


def _manifest(text: str, component: Json, at: str) -> Any:
    import yaml

    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        words = f"is no YAML (quote what stands between braces): {error}"
        raise Refused(f"{at}.container.args", None, words) from None
    if not isinstance(tree, dict):
        raise Refused(f"{at}.container.args", None, "the last argument must be one object")
    return _filled(tree, component, at)


def _filled(tree: Any, component: Json, at: str) -> Any:
    """Return a tree with its placeholders as expressions; one alone keeps its value's type."""
    if isinstance(tree, str):
        text = placeholders.text(tree, f"{at}.container.args", component)
        whole = text.startswith("${{ toText(") and text.endswith(") }}") and text.count("${{") == 1
        return "${{ " + text[len("${{ toText(") : -len(") }}")] + " }}" if whole else text
    if isinstance(tree, list):
        return [_filled(one, component, at) for one in tree]
    if isinstance(tree, dict):
        return {key: _filled(one, component, at) for key, one in tree.items()}
    return tree
