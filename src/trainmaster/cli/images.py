"""`trainmaster images`: the image catalog of this machine."""

import click


@click.command(epilog="Example: trainmaster images")
def command() -> None:
    """List the image names that mean something on this machine, and what they run."""
    from trainmaster.local.catalog import known_images

    for name, packages, entrypoint in known_images():
        click.echo(f"{name}\n    packages    {packages}\n    entrypoint  {entrypoint}")
