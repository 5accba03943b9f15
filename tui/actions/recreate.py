"""A container created again from what `docker inspect` told of the one before, and started.

Everything is as it was but its id and times. It is kept after its end, so that its output and exit
code can be read, and has a label that tells which action made it: entered again, that is found.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tui.actions.claiming import asked, claim
from tui.actions.context import Context, Done
from tui.actions.errors import StepFailed
from tui.actions.own_recipe import keep_own
from tui.actions.twins import refuse_second
from tui.model.plan import StartRun
from tui.model.recipe import Recipe
from tui.runs.docker_answers import FoundContainer, found_container

if TYPE_CHECKING:
    from docker import APIClient

LABEL = "milepost.action"

_WITHOUT_CHOICE = frozenset(("bridge", "host", "none"))
_OF_THE_ID = 12
"""Digits of a container's id that are its host name where none was given."""


@dataclass(frozen=True, slots=True)
class _Refused:
    """Why the engine will not do it."""

    reason: str


def perform(step: StartRun, context: Context) -> Done:
    """Create it and start it, or find what was created before."""
    name = step.container_name or step.recipe.container_name
    made = asked(context, lambda client: _made_by(client, context.plan.id))
    if made is None:
        refuse_second(context)
        claim(name, context)
        context.note(f"creating container {name}")
        made = _taken(asked(context, lambda client: _created(client, step.recipe, name, context)))
    context.note(f"container {name} is made", container_id=made.container.id, container_name=name)
    started = _taken(asked(context, lambda client: _started(client, made, step.recipe)))
    container = started.container
    keep_own(_recipe_of(started, step.recipe), context)
    return Done(
        line=f"started container {name} ({container.id[:12]})",
        facts={"container_id": container.id, "container_name": container.name},
    )


def _taken(answer: FoundContainer | _Refused) -> FoundContainer:
    if isinstance(answer, _Refused):
        raise StepFailed(answer.reason)
    return answer


def _recipe_of(started: FoundContainer, recipe: Recipe) -> Recipe:
    container = started.container
    return replace(
        recipe,
        run_started_at=container.started_at,
        container_id=container.id,
        container_spec=started.spec,
        container_name=container.name,
        removes_container=False,
        submission_id="",
    )


# Calls, each of which may be made twice


def _made_by(client: APIClient, action: str) -> FoundContainer | None:
    listed = client.containers(all=True, filters={"label": f"{LABEL}={action}"})
    return next((found_container(client.inspect_container(each["Id"])) for each in listed), None)


def _created(
    client: APIClient, recipe: Recipe, name: str, context: Context
) -> FoundContainer | _Refused:
    from docker.errors import APIError

    try:
        spec = json.loads(recipe.container_spec)
        image = _image(client, spec)
        config = creation(spec, recipe, image=image, host=str(client.info().get("Name", "")))
        config["Labels"] = {**(config.get("Labels") or {}), LABEL: context.plan.id}
        made: dict[str, Any] = client.create_container_from_config(  # type: ignore[no-untyped-call]
            config, name
        )
        return found_container(client.inspect_container(made["Id"]))
    except APIError as fault:
        if (found := _made_by(client, context.plan.id)) is not None:
            return found  # an attempt before this one, whose answer was lost
        return _Refused(f"container {name} cannot be created: {fault.explanation or fault}")
    except (ValueError, KeyError) as fault:
        return _Refused(f"what is kept of container {name} cannot be used: {fault!r}")


def _started(client: APIClient, made: FoundContainer, recipe: Recipe) -> FoundContainer | _Refused:
    """Started once, whatever became of it since."""
    from docker.errors import APIError

    container = made.container
    try:
        now = found_container(client.inspect_container(container.id))
        if not now.container.started_at:
            _connect(client, now, json.loads(recipe.container_spec))
            client.start(container.id)
        return found_container(client.inspect_container(container.id))
    except APIError as fault:
        return _Refused(f"container {container.name} does not start: {fault.explanation or fault}")


def _image(client: APIClient, spec: Mapping[str, Any]) -> str:
    """Its image by the name it had, unless that is another image now."""
    from docker.errors import ImageNotFound

    name, image_id = str(spec["Config"]["Image"]), str(spec["Image"])
    try:
        found: dict[str, Any] = client.inspect_image(name)  # type: ignore[no-untyped-call]
    except ImageNotFound:
        return image_id
    return name if found["Id"] == image_id else image_id


def _connect(client: APIClient, made: FoundContainer, spec: Mapping[str, Any]) -> None:
    """Join the networks beside its first one."""
    joined = json.loads(made.spec)["NetworkSettings"]["Networks"]
    for network, endpoint in endpoints(spec).items():
        if network not in joined:
            client.connect_container_to_network(made.container.id, network, **_connection(endpoint))


# What to create. Pure


def creation(spec: Mapping[str, Any], recipe: Recipe, *, image: str, host: str) -> dict[str, Any]:
    """What the engine is told, from what it told of the container before.

    Args:
        spec: what `inspect` said.
        recipe: command and environment, which may have been changed.
        image: name or id.
        host: the machine's name.
    """
    config = {**spec["Config"], "Image": image}
    limits = {**spec["HostConfig"], "AutoRemove": False}
    mode = str(limits.get("NetworkMode") or "default")
    if _is_given(config.get("Hostname"), spec["Id"], host) or mode.startswith("container:"):
        config.pop("Hostname", None)
    entrypoint = len(config.get("Entrypoint") or ())
    if entrypoint:
        config["Entrypoint"] = list(recipe.argv[:entrypoint])
    config["Cmd"] = list(recipe.argv[entrypoint:])
    config["Env"] = [f"{name}={value}" for name, value in recipe.environment or ()]
    limits["Binds"] = [*(limits.get("Binds") or ()), *_unnamed_volumes(spec)] or None
    limits["Links"] = [_link(link) for link in limits.get("Links") or ()] or None
    config["HostConfig"] = limits
    if own := {name: each for name, each in endpoints(spec).items() if name == mode}:
        config["NetworkingConfig"] = {"EndpointsConfig": own}
    return config


def _is_given(name: object, container_id: str, host: str) -> bool:
    """Whether the engine gave the container that host name."""
    return name in (container_id[:_OF_THE_ID], host)


def endpoints(spec: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What a person chose for each of its networks, without what the engine gave it."""
    config, networks = spec["Config"], spec["NetworkSettings"]["Networks"] or {}
    given = (spec["Id"][:_OF_THE_ID], config.get("Hostname"))
    return {
        name: {
            "Aliases": [each for each in endpoint.get("Aliases") or () if each not in given],
            **{key: endpoint.get(key) for key in ("IPAMConfig", "Links", "DriverOpts")},
        }
        for name, endpoint in networks.items()
        if name not in _WITHOUT_CHOICE
    }


def _connection(endpoint: Mapping[str, Any]) -> dict[str, Any]:
    """The same, as the SDK wants to be told."""
    address = endpoint["IPAMConfig"] or {}
    return {
        "aliases": endpoint["Aliases"],
        "links": endpoint["Links"],
        "driver_opt": endpoint["DriverOpts"],
        "ipv4_address": address.get("IPv4Address"),
        "ipv6_address": address.get("IPv6Address"),
        "link_local_ips": address.get("LinkLocalIPs"),
    }


def _unnamed_volumes(spec: Mapping[str, Any]) -> Iterator[str]:
    """Volumes that Docker made up, so that what lies in them is there again."""
    host = spec["HostConfig"]
    named = {bind.split(":")[1] for bind in host.get("Binds") or () if ":" in bind}
    named |= {mount["Target"] for mount in host.get("Mounts") or ()}
    for mount in spec.get("Mounts") or ():
        if mount.get("Type") == "volume" and mount["Destination"] not in named:
            yield f"{mount['Name']}:{mount['Destination']}{'' if mount['RW'] else ':ro'}"


def _link(link: str) -> str:
    """`/db:/run-a/store`, as it is told, is `db:store` when it is asked for."""
    target, _, alias = link.partition(":")
    return f"{target.lstrip('/')}:{alias.rpartition('/')[2]}"
