"""`trainmaster crds`: the definitions of our kinds, for `kubectl apply -f -`."""

import click


@click.command(epilog="Example: trainmaster crds | kubectl apply -f -")
@click.option("-o", "--output", "form", type=click.Choice(["yaml", "json", "name"]), default="yaml", show_default=True,
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
    else:
        click.echo(yaml.safe_dump_all(printed, sort_keys=False), nl=False)
