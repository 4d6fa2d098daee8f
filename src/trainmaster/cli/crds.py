"""`trainmaster crds`: the definitions of our kinds, for `kubectl apply -f -`."""

import click


@click.command(epilog="Example: trainmaster crds | kubectl apply -f -")
def command() -> None:
    """Print the custom resource definitions of all kinds of jobs."""
    import yaml

    from trainmaster.api.schema import definitions

    click.echo(yaml.safe_dump_all(definitions(), sort_keys=False), nl=False)
