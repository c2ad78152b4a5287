"""What looks like a secret in text that anybody may have written. Pure.

Every function takes linear time whatever the text is: an expression either starts at something
that it cannot meet again on its way, or only where a word begins. `tests/unit/test_hostile_text.py`
holds them to that.
"""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "[redacted]"

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]*+-----.*?(?:-----END [A-Z ]*+-----|\Z)"
    # The beginning of one, where the text was cut within it.
    r"|-----BEGIN [A-Z ]*+-{0,4}\Z",
    re.DOTALL,
)
_BEARER = re.compile(r"(?i)\bbearer\s++[\w.~+/=-]{8,}+")
_BASIC = re.compile(r"(?i)\bbasic\s++[\w.~+/=-]{8,}+")
_DOTTED = re.compile(r"[\w.-]++")
_SIGNED = re.compile(r"\beyJ")
_ACCESS_KEY = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}+\b")
_PREFIXED = re.compile(r"\b(?:hf_|ghp_|gho_|github_pat_|sk-|xox[bap]-|glpat-)[A-Za-z0-9_-]{8,}+")
_IN_ADDRESS = re.compile(r"(?<=://)[^/\s:@]++:[^/\s@]++(?=@)")
_NAME_OF_ONE = re.compile(
    # A tokenizer is no token: what a language model's logs name most must stay readable.
    r"(?i)pass(?:word|wd|phrase)?|secret|token(?!i[sz](?:e|ing|ation))"
    r"|api[_-]?key|access[_-]?key|private[_-]?key|credential"
)
# Only where a word begins: within one, every letter would scan the rest of it again.
_NAMED = re.compile(r"(?<![\w.-])([\w.-]++)[\"']?\s*+[:=]\s*+")
_OPTION = re.compile(r"(?<!\S)-{1,2}([\w.-]++)[ \t]++")
_VALUE = re.compile(r"\"[^\"]*+\"|'[^']*+'|\S++")


def without_keys(text: str) -> str:
    """Private keys and what else stands between BEGIN and END."""
    return _PRIVATE_KEY.sub(HIDDEN, text)


def without_tokens(text: str) -> str:
    """Bearer tokens, and signed ones (JWT) wherever they stand."""
    return _DOTTED.sub(_unsigned, _BEARER.sub(HIDDEN, text))


def without_known(text: str) -> str:
    """Keys of well-known services, and credentials in headers and addresses."""
    for pattern in (_BASIC, _ACCESS_KEY, _PREFIXED, _IN_ADDRESS):
        text = pattern.sub(HIDDEN, text)
    return text


def without_named(text: str) -> str:
    """What follows a word such as `password=` or `"api_key":`."""
    kept: list[str] = []
    done = 0
    for named in _NAMED.finditer(text):
        if named.start() < done or not names_a_secret(named[1]):
            continue
        value = _VALUE.match(text, named.end())
        if value is not None:
            kept += (text[done : named.end()], HIDDEN)
            done = value.end()
    return "".join((*kept, text[done:]))


def without_options(text: str) -> str:
    """The word after an option such as `--password`."""
    kept: list[str] = []
    done = 0
    for option in _OPTION.finditer(text):
        value = _VALUE.match(text, option.end()) if names_a_secret(option[1]) else None
        if value is not None and not value[0].startswith("-"):
            kept += (text[done : option.end()], HIDDEN)
            done = value.end()
    return "".join((*kept, text[done:]))


def names_a_secret(name: str) -> bool:
    """Whether the value of a variable of this name is a secret."""
    return _NAME_OF_ONE.search(name) is not None


def _unsigned(run: re.Match[str]) -> str:
    """Letters and dots without the signed token in them: `eyJ`, six more, a dot, and the rest."""
    text = run[0]
    begins = _SIGNED.search(text)
    while begins is not None:
        dot = text.find(".", begins.end())
        if dot < 0 or dot + 1 == len(text):
            return text
        if dot - begins.end() >= 6:
            return text[: begins.start()] + HIDDEN
        # Whatever else begins before that dot is nearer to it still.
        begins = _SIGNED.search(text, dot)
    return text
