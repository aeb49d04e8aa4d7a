"""Found first on a rank's PYTHONPATH: starts telemetry, then runs the next ``sitecustomize``.

Python imports the first ``sitecustomize`` alone, so that the image's own would be hidden by this.
"""

import os
import sys


def _observe() -> None:
    # By its file: the rank's Python need not be one that has Lockstep installed.
    import importlib.util

    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    name = "_lockstep_telemetry"
    spec = importlib.util.spec_from_file_location(name, os.path.join(home, "telemetry.py"))
    if spec is None or spec.loader is None:
        return
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.observe(os.environ)


def _next() -> None:
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.realpath(os.path.dirname(os.path.abspath(__file__)))
    others = [one for one in sys.path if os.path.realpath(one or ".") != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = sys.modules["sitecustomize"] = module_from_spec(spec)
    spec.loader.exec_module(module)


# Outside a rank there is nothing to observe, and nothing but the next one is loaded.
if "RANK" in os.environ and "LOCKSTEP_TELEMETRY" in os.environ:
    try:
        _observe()
    except Exception as error:
        sys.stderr.write(f"lockstep: this rank has no telemetry: {error}\n")
_next()
