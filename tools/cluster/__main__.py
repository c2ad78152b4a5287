"""`python -m tools.cluster`: the command line. Data goes to standard output, talk to error."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from tools.cluster import debian, images
from tools.cluster.build import build
from tools.cluster.components import COMPONENTS, OPTIONAL
from tools.cluster.down import down
from tools.cluster.errors import ClusterError
from tools.cluster.report import describe, environment, log_files
from tools.cluster.spec import ADDONS, PEERS, PROFILES, Spec, existing, load
from tools.cluster.up import up
from tools.cluster.user_images import USER_IMAGES, build_image

Options = argparse.Namespace
_T = TypeVar("_T")


def _up(options: Options) -> None:
    up(
        Spec(
            name=options.name,
            profile=options.profile,
            addons=tuple(name for name in options.addons.split(",") if name),
            nodes=options.nodes,
            fake_nodes=options.fake_nodes,
            audit=options.audit is not None,
            audit_users=tuple(options.audit or ()),
            oldest=options.oldest,
        )
    )


def _down(options: Options) -> None:
    names = [spec.name for spec in existing()] if options.all else [options.name]
    for name in names:
        if not down(name):
            print(f"{name}: there is no such cluster", file=sys.stderr)


def _list(_: Options) -> None:
    for spec in existing():
        print(spec.name)


def _status(options: Options) -> None:
    print(describe(_existing(options.name)))


def _kubeconfig(options: Options) -> None:
    print(_existing(options.name).kubeconfig)


def _logs(options: Options) -> None:
    for path in log_files(_existing(options.name), options.component):
        print(f"==> {path} <==")
        print(path.read_text(errors="replace"), end="")


def _load(options: Options) -> None:
    images.load(_existing(options.name), [path.absolute() for path in options.archive])


def _peer(options: Options) -> None:
    seen = _existing(options.name)
    up(msgspec.structs.replace(seen, addons=(*seen.addons, options.peer)))


def _exec(options: Options) -> None:
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise ClusterError("exec: no command given", "Try `exec kubectl get nodes`.")
    path = environment(_existing(options.name))
    try:
        os.execvpe(command[0], command, path)
    except OSError as error:
        raise ClusterError(f"exec: {command[0]}: {error.strerror}") from None


def _build(options: Options) -> None:
    names = options.component or list(COMPONENTS)
    components = _chosen("component", names, COMPONENTS | OPTIONAL)
    with ThreadPoolExecutor(max_workers=1) as pool:
        # Images mostly wait for downloads; compiling fills that time.
        beside = pool.submit(_images, Options(image=[])) if options.images else None
        build(components)
        if beside:
            beside.result()


def _images(options: Options) -> None:
    names = options.image or [name for name, one in USER_IMAGES.items() if not one.on_demand]
    for image in _chosen("image", names, USER_IMAGES):
        print(build_image(image))


def _setup(_: Options) -> None:
    debian.setup()


_VERBS: Final[dict[str, tuple[Callable[[Options], None], str]]] = {
    "up": (_up, "bring a cluster up"),
    "down": (_down, "end a cluster and take everything back"),
    "status": (_status, "what runs, and what it uses"),
    "logs": (_logs, "print a component's log, or all"),
    "load": (_load, "load image archives into all nodes"),
    "exec": (_exec, "run a command with KUBECONFIG and PATH set"),
    "kubeconfig": (_kubeconfig, "print the path of the administrator's kubeconfig"),
    "peer": (_peer, "run a Go controller of the same APIs, for comparison"),
    "list": (_list, "the names of all clusters"),
    "build": (_build, "build components without starting anything"),
    "images": (_images, "build the images in images/ and print their archives"),
    "setup": (_setup, "install the Debian packages that nodes and images need"),
}
_WITHOUT_NAME: Final = ("list", "build", "images", "setup")


def parser() -> argparse.ArgumentParser:
    """All verbs and their options."""
    top = argparse.ArgumentParser(prog="python -m tools.cluster", description=__doc__)
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    subs = {}
    for name, (_, text) in _VERBS.items():
        subs[name] = verbs.add_parser(name, help=text, description=text)
        if name not in _WITHOUT_NAME:
            subs[name].add_argument("--name", default="dev", help="which cluster (default: dev)")
    start = subs["up"]
    start.add_argument("--profile", choices=PROFILES, default="full")
    start.add_argument("--addons", default="", help=f"comma-separated, of: {', '.join(ADDONS)}")
    start.add_argument("--nodes", type=int, default=3, help="real nodes of profile full")
    start.add_argument("--fake-nodes", type=int, default=0, help="nodes that KWOK plays")
    start.add_argument("--oldest", action="store_true", help="the oldest API server we support")
    start.add_argument(
        "--audit", nargs="*", metavar="USER", help="write an audit log, of these users' requests"
    )
    subs["down"].add_argument("--all", action="store_true", help="end every cluster")
    subs["logs"].add_argument("component", nargs="?", default="")
    subs["load"].add_argument("archive", nargs="+", type=Path)
    subs["exec"].add_argument("command", nargs=argparse.REMAINDER)
    subs["peer"].add_argument("peer", choices=PEERS)
    subs["build"].add_argument("component", nargs="*", help="default: all")
    subs["build"].add_argument("--images", action="store_true", help="all images too, beside it")
    subs["images"].add_argument("image", nargs="*", help="default: all")
    return top


def main(arguments: list[str]) -> int:
    """Run one command; its exit status."""
    options = parser().parse_args(arguments)
    try:
        _VERBS[options.verb][0](options)
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted\n\nhint: `down` takes back what was begun", file=sys.stderr)
        return 130
    return 0


def _existing(name: str) -> Spec:
    spec = load(name)
    if spec is None:
        names = ", ".join(spec.name for spec in existing()) or "none"
        raise ClusterError(
            f"{name}: there is no such cluster (there are: {names})",
            f"Run `python -m tools.cluster up --name {name}`.",
        )
    return spec


def _chosen(what: str, names: list[str], known: dict[str, _T]) -> list[_T]:
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise ClusterError(f"{what}: {unknown[0]!r} is not known", f"Use: {', '.join(known)}.")
    return [known[name] for name in names or known]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
