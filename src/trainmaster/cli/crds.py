"""`trainmaster crds`: the definitions of our kinds, for `kubectl apply -f -`."""

import click


@click.command(epilog="Example: trainmaster crds | kubectl apply -f -")
@click.option("--groups", is_flag=True, help="Those of PodGroup and Queue instead.")
def command(groups: bool) -> None:
    """Print the custom resource definitions of all kinds of jobs."""
    import yaml

    from trainmaster.api import groups as gangs
    from trainmaster.api.schema import definitions

    printed = gangs.definitions() if groups else definitions()
    click.echo(yaml.safe_dump_all(printed, sort_keys=False), nl=False)
