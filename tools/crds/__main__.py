"""Writes `manifests/crds` from our types; a check tells whether they are in step.

python -m tools.crds                     write
python -m tools.crds --check             name what is out of step, and fail
python -m tools.crds --pods CLUSTER      take the pod API anew, from a running test cluster
python -m tools.crds --jobsets CLUSTER   take JobSet's API anew, from one that has JobSet
python -m tools.crds --beside FILE       print the CRD for a cluster that has the one in FILE
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Final

from tools.cluster.client import Client
from tools.cluster.spec import load
from tools.crds import beside, conversion, definition, jobsets, podtemplate

FOLDER: Final = Path(__file__).parents[2] / "manifests" / "crds"
TARGET: Final = FOLDER / definition.MPIJOB.file
JOBSETS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/jobsets.jobset.x-k8s.io"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.crds", description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--pods", metavar="CLUSTER")
    parser.add_argument("--jobsets", metavar="CLUSTER")
    parser.add_argument("--beside", metavar="FILE", type=Path)
    options = parser.parse_args(arguments)
    if options.pods:
        _take_pods(options.pods)
    if options.jobsets:
        _take_jobsets(options.jobsets)
    if options.beside:
        return _print_beside(options.beside.read_text())
    wanted = {FOLDER / kind.file: definition.text(kind) for kind in definition.KINDS}
    wanted[FOLDER.parent / "overlays" / "conversion" / conversion.FILE] = conversion.text()
    late = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    for path in late:
        if options.check:
            print(f"{path.name} is out of step with our types: run `make manifests`")
        else:
            path.write_text(wanted[path])
    return 1 if options.check and late else 0


def _take_pods(cluster: str) -> None:
    client = _client(cluster)
    version = client.get("/version")["gitVersion"]
    schema = podtemplate.structural(client.get("/openapi/v3/api/v1"))
    source = f"the OpenAPI of a Kubernetes {version} API server; `python -m tools.crds --pods`"
    _keep(podtemplate.STORED, source, schema)


def _take_jobsets(cluster: str) -> None:
    schema = jobsets.structural(_client(cluster).get(JOBSETS))
    source = "the definition of JobSet on a test cluster; `python -m tools.crds --jobsets`"
    _keep(jobsets.STORED, source, schema)


def _client(cluster: str) -> Client:
    spec = load(cluster)
    if spec is None:
        raise SystemExit(f"{cluster}: there is no such cluster; see `python -m tools.cluster up`")
    return Client(spec)


def _keep(path: Path, source: str, schema: podtemplate.Schema) -> None:
    text = json.dumps({"source": source, "schema": schema}, indent=1, sort_keys=True)
    path.write_text(text + "\n")


def _print_beside(existing: str) -> int:
    try:
        merged = beside.merged(definition.definition(), json.loads(existing))
    except (ValueError, KeyError) as error:
        print(f"error: {error}\n\nhint: give `kubectl get crd … -o json`", file=sys.stderr)
        return 1
    for line in merged.remarks:
        print(line, file=sys.stderr)
    print(json.dumps(merged.definition, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
