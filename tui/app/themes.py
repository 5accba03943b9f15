"""Themes: TOML files that give Textual its colours and every role its style.

A theme is read strictly: an unknown key, a missing role or a colour that is none is refused, with
the file, the key and the nearest known key. Shipped themes lie in the top-level `themes/` of a
checkout and in `tui/themes` of an installed wheel.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.errors import StyleSyntaxError
from rich.style import Style
from textual.color import Color, ColorParseError
from textual.theme import Theme as TextualTheme

from tui.app.nearest import did_you_mean
from tui.errors import ConfigError
from tui.view.rows import Role

_PACKAGE = Path(__file__).resolve().parent.parent
_SHIPPED_ORDER = ("night", "day", "contrast", "safe", "sixteen", "mono")
_KEYS = ("name", "dark", "ansi", "colours", "roles")
_COLOURS = (
    "primary",
    "secondary",
    "warning",
    "error",
    "success",
    "accent",
    "foreground",
    "background",
    "surface",
    "panel",
)
_ANSI_VARIABLES = {
    "ansi-background": "ansi_black",
    "ansi-foreground": "ansi_white",
    "border-blurred": "ansi_black",
    "screen-selection-background": "ansi_bright_blue",
    "screen-selection-foreground": "ansi_black",
    "block-cursor-foreground": "ansi_black",
    "block-cursor-background": "ansi_white",
    "input-cursor-background": "ansi_white",
    "input-cursor-foreground": "ansi_black",
    "input-cursor-text-style": "none",
    "input-selection-background": "ansi_bright_blue",
    "input-selection-foreground": "ansi_black",
}
"""What Textual would otherwise blend from true colours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """One theme, checked."""

    name: str
    dark: bool
    ansi: bool
    """Uses the terminal's own 16 colours and background."""
    colours: Mapping[str, Any]
    """Textual's base colours by their Textual names."""
    styles: Mapping[Role, Style]
    """How each role is painted, background included where the theme has one."""

    def for_textual(self) -> TextualTheme:
        """The part Textual's own widgets use: palette, input, toasts."""
        return TextualTheme(
            name=self.name,
            dark=self.dark,
            ansi=self.ansi,
            variables=_ANSI_VARIABLES if self.ansi else {},
            **self.colours,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Themes:
    """All themes there are, and why some files are none."""

    by_name: Mapping[str, Theme]
    """In the order in which a person cycles through them."""
    faults: tuple[str, ...] = ()

    def named(self, name: str) -> Theme:
        """The theme of that name, or a refusal that names the nearest."""
        if name not in self.by_name:
            raise ConfigError(
                f"there is no theme {name!r}{did_you_mean(name, self.by_name)}",
                f"Themes: {', '.join(self.by_name)}.",
            )
        return self.by_name[name]

    def after(self, name: str) -> Theme:
        """The theme that follows `name`, the first one after the last."""
        names = tuple(self.by_name)
        return self.by_name[names[(names.index(name) + 1) % len(names)]]


def all_themes(user_folder: Path | None) -> Themes:
    """Shipped themes, then the user's; one of the user's may take a shipped one's name."""
    found: dict[str, Theme] = {}
    faults: list[str] = []
    for path in _shipped():
        theme = load(path)
        found[theme.name] = theme
    for path in _toml_files(user_folder):
        try:
            theme = load(path)
        except ConfigError as error:
            faults.append(error.message)
        else:
            found[theme.name] = theme
    return Themes(by_name=found, faults=tuple(faults))


def load(path: Path) -> Theme:
    """The theme in that file; ConfigError when it is not a whole and valid one."""
    table = _table_in(path)
    _only_known(path, table, _KEYS, "")
    colours = _section(path, table, "colours")
    roles = _section(path, table, "roles")
    _only_known(path, colours, _COLOURS, "colours.")
    _only_known(path, roles, tuple(Role), "roles.")
    for name in _COLOURS:
        _checked_colour(path, name, colours)
    ansi = _flag(path, table, "ansi")
    ground = None if ansi else Color.parse(colours["background"]).rich_color
    under = Style(bgcolor=ground)
    return Theme(
        name=_name(path, table),
        dark=_flag(path, table, "dark"),
        ansi=ansi,
        colours=colours,
        styles={role: under + _checked_style(path, role, roles) for role in Role},
    )


def _shipped() -> Iterable[Path]:
    """The shipped themes, the default first."""
    folder = next(f for f in (_PACKAGE / "themes", _PACKAGE.parent / "themes") if f.is_dir())
    rank = {name: at for at, name in enumerate(_SHIPPED_ORDER)}
    return sorted(folder.glob("*.toml"), key=lambda p: (rank.get(p.stem, len(rank)), p.stem))


def _toml_files(folder: Path | None) -> Iterable[Path]:
    return () if folder is None else sorted(folder.glob("*.toml"))


def _table_in(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path.name}: {error}") from error


def _only_known(path: Path, table: Mapping[str, Any], known: tuple[str, ...], prefix: str) -> None:
    for key in table:
        if key not in known:
            raise ConfigError(f"{path.name}: unknown key {prefix}{key}{did_you_mean(key, known)}")


def _section(path: Path, table: Mapping[str, Any], key: str) -> dict[str, str]:
    section = table.get(key)
    if not isinstance(section, dict):
        raise ConfigError(f"{path.name}: the table [{key}] is missing")
    return section


def _name(path: Path, table: Mapping[str, Any]) -> str:
    name = table.get("name")
    if not isinstance(name, str) or not name.isprintable() or not name:
        raise ConfigError(f"{path.name}: name must be a word")
    return name


def _flag(path: Path, table: Mapping[str, Any], key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise ConfigError(f"{path.name}: {key} must be true or false")
    return value


def _checked_colour(path: Path, name: str, colours: Mapping[str, Any]) -> None:
    if name not in colours:
        raise ConfigError(f"{path.name}: colours.{name} is missing")
    try:
        Color.parse(colours[name])
    except (ColorParseError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{path.name}: colours.{name} is not a colour: {colours[name]!r}"
        ) from error


def _checked_style(path: Path, role: Role, roles: Mapping[str, Any]) -> Style:
    if role not in roles:
        raise ConfigError(f"{path.name}: roles.{role} is missing")
    text = roles[role]
    try:
        style = Style.parse(text)
    except (StyleSyntaxError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path.name}: roles.{role} is not a style: {text!r}") from error
    if style.blink or style.blink2 or style.link:
        raise ConfigError(f"{path.name}: roles.{role} may not blink or link: {text!r}")
    return style
