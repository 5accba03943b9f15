"""The theme corpus: each shipped theme is whole and readable, each bad one is refused by name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from rich.color import Color, ColorSystem
from rich.style import Style
from textual.color import Color as TextualColor

from tui.app.themes import Theme, all_themes, load
from tui.errors import ConfigError
from tui.view.rows import Role

SHIPPED = all_themes(None)
FAINT = frozenset({Role.MUTED, Role.CHART, Role.BAR, Role.BAR_CACHE, Role.BAR_EMPTY})
BAD = {
    "colour_unknown.toml": "colour_unknown.toml: colours.warning is not a colour: 'mauveish'",
    "colour_missing.toml": "colour_missing.toml: colours.panel is missing",
    "key_unknown.toml": "key_unknown.toml: unknown key drak; did you mean dark?",
    "role_unknown.toml": "role_unknown.toml: unknown key roles.lable; did you mean label?",
    "role_missing.toml": "role_missing.toml: roles.selected is missing",
    "role_no_style.toml": "role_no_style.toml: roles.bad is not a style: 'bold reddd'",
    "role_blinks.toml": "role_blinks.toml: roles.bad may not blink or link: 'blink #ff5f5f'",
    "not_toml.toml": "not_toml.toml: ",
    "no_roles.toml": "no_roles.toml: the table [roles] is missing",
    "dark_word.toml": "dark_word.toml: dark must be true or false",
    "no_name.toml": "no_name.toml: name must be a word",
}


def luminance(color: Color) -> float:
    channels = (c / 255 for c in color.get_truecolor())
    red, green, blue = (
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(style: Style, system: ColorSystem) -> float:
    """WCAG 2 contrast of a style's text on its own ground, as such a terminal shows them."""
    assert style.color is not None
    assert style.bgcolor is not None
    shown = (luminance(color.downgrade(system)) for color in (style.color, style.bgcolor))
    darker, lighter = sorted(shown)
    return (lighter + 0.05) / (darker + 0.05)


def test_there_are_the_themes_a_person_may_need() -> None:
    assert tuple(SHIPPED.by_name) == ("night", "day", "contrast", "safe", "sixteen", "mono")
    assert SHIPPED.faults == ()


@pytest.mark.parametrize("theme", SHIPPED.by_name.values(), ids=lambda theme: theme.name)
class TestEachShippedTheme:
    def test_gives_every_role_a_style(self, theme: Theme) -> None:
        assert set(theme.styles) == set(Role)

    def test_makes_a_theme_that_textual_takes(self, theme: Theme) -> None:
        variables = theme.for_textual().to_color_system().generate()
        assert all(TextualColor.parse(variables[name]) for name in ("background", "foreground"))

    def test_is_readable(self, theme: Theme) -> None:
        if theme.ansi:
            assert all(
                style.color is None or style.color.is_system_defined or style.color.is_default
                for style in theme.styles.values()
            )
            return
        for system in (ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT):
            for role, style in theme.styles.items():
                assert contrast(style, system) >= (3.0 if role in FAINT else 4.5), (role, system)

    def test_tells_bad_from_good_without_hue(self, theme: Theme) -> None:
        bad, good = theme.styles[Role.BAD], theme.styles[Role.GOOD]
        assert (bad.bold, bad.reverse) != (good.bold, good.reverse)


def test_the_safe_theme_has_neither_red_nor_green() -> None:
    for role, style in SHIPPED.by_name["safe"].styles.items():
        for color in (style.color, style.bgcolor):
            assert color is not None
            red, green, blue = color.get_truecolor()
            assert not (red > 1.6 * max(green, blue, 1)), role
            assert not (green > 1.3 * max(red, blue, 1)), role


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_bad_theme_is_refused_by_name(name: str, data: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(data / "bad_themes" / name)
    assert caught.value.message.startswith(BAD[name])


def test_every_bad_theme_has_its_message(data: Path) -> None:
    assert {path.name for path in (data / "bad_themes").glob("*.toml")} == set(BAD)


class TestUserThemes:
    def test_are_added_after_the_shipped_ones(self, tmp_path: Path) -> None:
        self.own(tmp_path, "dusk")
        assert list(all_themes(tmp_path).by_name)[-1] == "dusk"

    def test_a_bad_one_is_told_and_the_others_load(self, tmp_path: Path, data: Path) -> None:
        shutil.copy(data / "bad_themes" / "role_unknown.toml", tmp_path)
        self.own(tmp_path, "dusk")
        themes = all_themes(tmp_path)
        assert "dusk" in themes.by_name
        assert themes.faults == (BAD["role_unknown.toml"],)

    def test_one_may_take_a_shipped_name(self, tmp_path: Path) -> None:
        self.own(tmp_path, "day")
        assert all_themes(tmp_path).by_name["day"].dark

    def test_a_folder_that_is_not_there_has_none(self, tmp_path: Path) -> None:
        assert all_themes(tmp_path / "none").by_name == SHIPPED.by_name

    @staticmethod
    def own(folder: Path, name: str) -> None:
        night = Path(__file__).parents[2] / "themes" / "night.toml"
        text = night.read_text().replace('name = "night"', f'name = "{name}"')
        (folder / f"{name}.toml").write_text(text)


def test_an_unknown_theme_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean night"):
        SHIPPED.named("nigth")


def test_cycling_comes_round() -> None:
    name, seen = "night", []
    for _ in SHIPPED.by_name:
        name = SHIPPED.after(name).name
        seen.append(name)
    assert seen == ["day", "contrast", "safe", "sixteen", "mono", "night"]
