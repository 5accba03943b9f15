"""Miles' command line as a monitor needs it. Total: broken quoting and odd values are no error."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from tui.miles.secrets import masked_words
from tui.model.launch import LaunchArgs

_MOST_WORDS = 8192
_MOST_CHARS = 1 << 17
"""Linux passes no longer word than this."""
DEEPEST = 4
"""Levels of commands inside words: `docker run … bash -c "bash -c '… train.py …'"`."""

SCRIPT = re.compile(r"(?:.*/)?train(?:_async)?\.py")
"""The word that is Miles' driver."""
_SCRIPT_WITHIN = re.compile(r"(?:^|[\s/'\"])train(?:_async)?\.py(?=[\s'\"]|$)")
_BLANK = re.compile(r"\s")
_SHELL_C = re.compile(r"-[a-z]*c")
NAMED = re.compile(r"(?:--env=|-e)?(?P<name>-{0,2}[A-Za-z_][\w-]{0,63})=")
"""What stands before a value in its word: `EXTRA_ARGS=`, `--extra-args=`, Docker's `--env=X=`."""
_ENDS_COMMAND = re.compile(r"[;&|]+|\|&")
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
"""The end of a line that goes on, and not a backslash that is itself escaped."""
_REDIRECTS = re.compile(r"[<>]+&?|&>>?|>\|")
_MEGATRON_ONLY = frozenset(
    (
        "ckpt-format", "ckpt-step", "context-parallel-strategy", "distributed-timeout-minutes",
        "expert-model-parallel-size", "finetune", "megatron-to-hf-mode", "no-load-optim",
        "no-load-rng", "num-layers", "pipeline-model-parallel-size", "recompute-granularity",
        "sequence-parallel", "tensor-model-parallel-size", "use-distributed-optimizer",
    )
)  # fmt: skip
"""Options that Miles' FSDP parser refuses, so that whoever gives one trains with Megatron."""
_FSDP_ONLY = re.compile(r"fsdp-.*|disable-fp32-master|gradient-checkpointing|dp-replicate-size")


def launch_from_argv(argv: Sequence[str]) -> LaunchArgs:
    """What a process' argument vector says. Commands inside its words are read too."""
    words = tuple(_unfolded(argv[:_MOST_WORDS], depth=0))
    return _launch(words, shown=masked_words(argv[:_MOST_WORDS]))


def launch_from_shell(command: str) -> LaunchArgs:
    """What a command as one string says, such as the entrypoint that Ray prints."""
    words = _split(command)
    return _launch(tuple(_unfolded(words, depth=0)), shown=masked_words(words))


def _launch(words: tuple[str, ...], shown: tuple[str, ...]) -> LaunchArgs:
    script, own = _after_script(words)
    given = {**_options(_nested(words)), **_options(own)}
    return LaunchArgs(
        argv=shown,
        script=script,
        save=_text(given, "save"),
        load=_text(given, "load"),
        ref_load=_text(given, "ref-load"),
        hf_checkpoint=_text(given, "hf-checkpoint"),
        save_interval=_number(given, "save-interval"),
        eval_interval=_number(given, "eval-interval"),
        num_rollout=_number(given, "num-rollout"),
        start_rollout_id=_number(given, "start-rollout-id"),
        save_trigger=_text(given, "save-trigger-sentinel"),
        rollout_batch_size=_number(given, "rollout-batch-size"),
        samples_per_prompt=_number(given, "n-samples-per-prompt"),
        global_batch_size=_number(given, "global-batch-size"),
        steps_per_rollout=_number(given, "num-steps-per-rollout"),
        backend=_backend(given),
        colocate="colocate" in given,
        fault_tolerance="use-fault-tolerance" in given,
        async_save="async-save" in given,
    )


def _after_script(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The script and its own words; all words where a launcher builds the rest."""
    for index, word in enumerate(words):
        if SCRIPT.fullmatch(word):
            return word, _own_words(words[index + 1 :])
    return "", words


def _own_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words up to the end of the shell command, without redirections."""
    own: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif _REDIRECTS.fullmatch(word):
            if own and own[-1] in ("1", "2"):  # the descriptor of `2>&1`
                own.pop()
            skip = True
        elif _ENDS_COMMAND.fullmatch(word):
            break
        else:
            own.append(word)
    return tuple(own)


def _nested(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words inside words that are option lists, such as `EXTRA_ARGS=--save X`.

    They count where the script's own words are silent.
    """
    found: list[str] = []
    for word in words:
        if options := option_list(word):
            found.extend(_split(options))
    return tuple(found)


def option_list(word: str) -> str:
    """The option list that a word is or ends in; empty when it has none."""
    value = after_name(word)
    is_list = value.lstrip().startswith("--") and (value != word or _BLANK.search(word))
    return value if is_list else ""


def after_name(word: str) -> str:
    """The value in `NAME=VALUE`; any other word whole."""
    named = NAMED.match(word)
    return word[named.end() :] if named else word


def _options(words: tuple[str, ...]) -> Mapping[str, str]:
    """Option → its last value, empty for a switch or an option whose value is missing."""
    given: dict[str, str] = {}
    for index, word in enumerate(words):
        if not word.startswith("--") or len(word) == 2:
            continue
        name, equals, value = word[2:].partition("=")
        if not equals and index + 1 < len(words) and not words[index + 1].startswith("--"):
            value = words[index + 1]
        given[name.replace("_", "-")] = value
    return given


def _text(given: Mapping[str, str], name: str) -> str | None:
    return given.get(name) or None


def _number(given: Mapping[str, str], name: str) -> int | None:
    value = given.get(name, "")
    return int(value) if re.fullmatch(r"-?[0-9]{1,18}", value) else None


def _backend(given: Mapping[str, str]) -> str:
    named = given.get("train-backend", "")
    if named in ("fsdp", "megatron"):
        return named
    if any(_FSDP_ONLY.fullmatch(name) for name in given):
        return "fsdp"
    return "megatron" if _MEGATRON_ONLY & given.keys() else ""


def _unfolded(words: Sequence[str], depth: int) -> Iterator[str]:
    """The words, with those that are command lines themselves split into theirs."""
    previous = ""
    for word in words:
        if depth < DEEPEST and is_command(word, previous):
            yield from _unfolded(_split(after_name(word)), depth + 1)
        else:
            yield word
        previous = word


def is_command(word: str, previous: str) -> bool:
    """Whether a word is a command line for a shell itself."""
    if not _BLANK.search(word):
        return False
    return bool(_SHELL_C.fullmatch(previous) or _SCRIPT_WITHIN.search(word))


def _split(command: str) -> tuple[str, ...]:
    """The words of a shell command; operators are words of their own."""
    text = _CONTINUED.sub(r"\1 ", command[:_MOST_CHARS])
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        for word in lexer:
            words.append(word)
            if len(words) == _MOST_WORDS:
                break
    except ValueError:  # a quote without its partner: words are all that can be had
        words = [word.strip("'\"") for word in text.split()[:_MOST_WORDS]]
    return tuple(words)
