"""`trainmaster crds`: the definitions of our kinds, for `kubectl apply -f -`."""

import click

from trainmaster.cli.output import FORMS


@click.command(epilog="Example: trainmaster crds | kubectl apply -f -")
@click.option("-o", "--output", "form", type=click.Choice(FORMS), default="yaml", show_default=True,
              help="Form of the output.")
@click.option("--groups", is_flag=True, help="Those of PodGroup and Queue instead.")
def command(groups: bool, form: str) -> None:
    """Print the custom resource definitions of all kinds of jobs."""
    import json

    import yaml

    from trainmaster.api import groups as gangs
    from trainmaster.api.schema import definitions

    printed = gangs.definitions() if groups else definitions()
    if form == "name":
        for each in printed:
            click.echo(each["metadata"]["name"])
    elif form == "json":
        click.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": printed}, indent=2))
    elif form in ("table", "wide"):
        from trainmaster.cli.tables import Table

        Table(["NAME", "KIND", "SHORT NAMES", "VERSIONS"], cut_last=False).show([
            [each["metadata"]["name"], each["spec"]["names"]["kind"],
             ",".join(each["spec"]["names"].get("shortNames") or ()),
             ",".join(version["name"] for version in each["spec"]["versions"])] for each in printed])
    else:
        click.echo(yaml.safe_dump_all(printed, sort_keys=False), nl=False)
