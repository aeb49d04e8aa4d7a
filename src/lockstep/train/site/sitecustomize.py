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


def _probe() -> None:
    import importlib.util

    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "probes")
    spec = importlib.util.spec_from_file_location(
        "lockstep_probes",
        os.path.join(folder, "__init__.py"),
        submodule_search_locations=[folder],
    )
    if spec is None or spec.loader is None:
        return
    package = sys.modules["lockstep_probes"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    importlib.import_module("lockstep_probes.install").install()


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


def begin() -> None:
    """Begin to observe, if this is a rank; outside one nothing but the next one is loaded."""
    is_rank = "RANK" in os.environ or "LOCKSTEP_ALONE" in os.environ
    if is_rank and "LOCKSTEP_TELEMETRY" in os.environ:
        try:
            _observe()
        except Exception as error:
            sys.stderr.write(f"lockstep: this rank has no telemetry: {error}\n")
    # Workers of a data loader that are no forks of their rank are looked at, too.
    if is_rank and os.environ.get("LOCKSTEP_PROBES"):
        try:
            _probe()
        except Exception as error:
            sys.stderr.write(f"lockstep: this rank has no probes: {error}\n")


# A rank that is forked calls ``begin`` itself, under another name.
if __name__ == "sitecustomize":
    begin()
    _next()
