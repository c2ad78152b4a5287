"""Which files of a folder do not travel with a job: `.odhignore`, written as `.gitignore` is. Pure.

A line is a pattern: `*`, `?`, `[a-z]` within a name, `**` for any folders; with a `/` in it (not
at its end) it counts from the folder itself, else at any depth; a `/` at its end means folders
only; `!` takes back; the last line that fits decides. Without a line about them, what no job
needs or what may hold secrets stays at home too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Final

import msgspec

FILE: Final = ".odhignore"
_RUBBISH: Final = (
    *(".git", ".hg", ".svn", "__pycache__", "*.pyc", ".ipynb_checkpoints", ".venv", "venv"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", "node_modules", ".cache", FILE),
)
_KEYS: Final = (
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", ".ssh"),
    *("*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.pkcs12", "*.jks", "*.keystore", "*.ppk"),
    *(".gnupg", "*.kdbx", ".password-store", "**/.local/share/keyrings", "*.ovpn"),
)
_ENVIRONMENTS: Final = (
    *(".env", ".env.*", "*.env", ".envrc", ".*_history"),
    *("!.env.example", "!.env.sample", "!.env.template"),
    *("secrets.yaml", "secrets.yml", "secrets.json", "secrets.toml", ".credentials"),
    *("credentials.json", "credentials.yaml", "credentials.yml", "credentials.toml", "token.json"),
)
_CLOUDS: Final = (
    *(".aws", ".azure", ".oci", ".bluemix", ".boto", ".s3cfg", ".mc", ".passwd-s3fs"),
    *("**/.config/gcloud", "**/.config/rclone", "rclone.conf", "application_default_credentials*"),
    *("service-account*.json", "service_account*.json", "client_secret*.json"),
    *("terraform.tfstate*", "*.tfstate", "*.tfvars", ".terraform", ".terraformrc"),
    *(".vault-token", ".vault_pass*", ".databrickscfg", ".snowsql", ".snowflake"),
)
_CLUSTERS: Final = (
    *(".kube", "kubeconfig", "kubeconfig.*", "*.kubeconfig"),
    *(".docker", ".dockercfg", ".dockerconfigjson", "**/.config/containers"),
)
_LOGINS: Final = (
    *(".netrc", "_netrc", ".pypirc", ".npmrc", ".yarnrc.yml", ".condarc", "pip.conf", ".htpasswd"),
    *(".git-credentials", "**/.config/git", "**/.config/gh", "**/.config/glab-cli"),
    *("**/.cargo/credentials*", "**/.gem/credentials", "**/.m2/settings*.xml", ".gradle"),
    *(".pgpass", ".my.cnf", ".mylogin.cnf", "**/.dvc/config.local", "**/.streamlit/secrets.toml"),
    *(".huggingface", ".kaggle", "kaggle.json", ".comet.config", "clearml.conf", ".jupyter"),
)
ALWAYS: Final = (*_RUBBISH, *_KEYS, *_ENVIRONMENTS, *_CLOUDS, *_CLUSTERS, *_LOGINS)


class _Line(msgspec.Struct, frozen=True):
    expression: str
    anchored: bool
    folders_only: bool
    keeps: bool

    @property
    def sort(self) -> tuple[bool, bool, bool]:
        return self.anchored, self.folders_only, self.keeps


class _Rule(msgspec.Struct, frozen=True):
    """Neighbouring lines of one sort, which any of them decides alike."""

    pattern: re.Pattern[str]
    anchored: bool
    folders_only: bool
    keeps: bool


class Ignored(msgspec.Struct, frozen=True):
    rules: tuple[_Rule, ...]

    def __call__(self, path: str, *, folder: bool) -> bool:
        """Whether this path, relative and with `/`, stays at home."""
        name = path.rpartition("/")[2]
        for rule in reversed(self.rules):
            seen = path if rule.anchored else name
            if (folder or not rule.folders_only) and rule.pattern.fullmatch(seen):
                return not rule.keeps
        return False


def ignored(lines: Iterable[str]) -> Ignored:
    said = (_line(line) for line in (*ALWAYS, *lines) if _says_something(line))
    return Ignored(
        tuple(
            _Rule(re.compile("|".join(line.expression for line in same), re.DOTALL), *sort)
            for sort, same in groupby(said, key=lambda line: line.sort)
        )
    )


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _line(line: str) -> _Line:
    text = line.rstrip()
    keeps = text.startswith("!")
    text = text.removeprefix("!").removeprefix("\\")
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    return _Line(_translated(text.lstrip("/")), "/" in text, folders_only, keeps)


def _translated(glob: str) -> str:
    """A regular expression that never tries a text again and again, however many stars there are:
    what stands between two of them is taken where it comes first, and for good."""
    if "/" not in glob:
        return ".*" if glob == "**" else _component(glob)
    first, *others = _between_folders(glob.split("/"))
    if not others:
        return first
    *middle, last = others
    made = f"{first}/" if first else ""
    made += "".join(f"(?>(?:[^/]*/)*?{part}/)" for part in middle if part)
    return made + (f"(?:[^/]*/)*?{last}" if last else ".*")


def _between_folders(components: list[str]) -> list[str]:
    """What stands before, between and behind the `**`, as regular expressions."""
    found: list[list[str]] = [[]]
    for component in components:
        if component == "**":
            found.append([])
        else:
            found[-1].append(_component(component))
    return ["/".join(part) for part in found]


def _component(glob: str) -> str:
    """A name, of which each `*` is any part."""
    parts, rest = [""], glob
    while rest:
        if rest[0] == "*":
            parts.append("")
            rest = rest.lstrip("*")
            continue
        length, expression = _one(rest)
        parts[-1] += expression
        rest = rest[length:]
    first, *others = parts
    if not others:
        return first
    *middle, last = others
    return first + "".join(f"(?>[^/]*?{part})" for part in middle) + f"[^/]*{last}"


def _one(rest: str) -> tuple[int, str]:
    """The first character of the pattern, or its first `[...]`, as a regular expression for one
    character."""
    if rest[0] == "?":
        return 1, "[^/]"
    end = rest.find("]", 2) if rest[0] == "[" else -1
    if end > 0:
        inner = rest[1:end].replace("\\", "\\\\").replace("[", "\\[")
        inner = f"^{inner[1:]}" if inner[0] == "!" else inner
        expression = f"(?!/)[{inner}]"
        if _sound(expression):
            return end + 1, expression
    return 1, re.escape(rest[0])


def _sound(expression: str) -> bool:
    """`[z-a]` is none."""
    try:
        re.compile(expression)
    except re.error:
        return False
    return True
