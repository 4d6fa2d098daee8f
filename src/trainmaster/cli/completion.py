"""`trainmaster completion SHELL`: what a shell needs to complete commands, options and names from the cluster."""

import click

SHELLS = ("bash", "fish", "zsh")


@click.command(epilog="Example: trainmaster completion bash > ~/.local/share/bash-completion/completions/trainmaster")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash   trainmaster completion bash > ~/.local/share/bash-completion/completions/trainmaster
    zsh    trainmaster completion zsh > ~/.zfunc/_trainmaster
    fish   trainmaster completion fish > ~/.config/fish/completions/trainmaster.fish

    The folder must be there. zsh looks into ~/.zfunc with these lines in ~/.zshrc:

    \b
    fpath=(~/.zfunc $fpath)
    autoload -Uz compinit && compinit
    """
    from click.shell_completion import get_completion_class

    from trainmaster.cli.main import cli

    found = get_completion_class(shell)
    assert found is not None
    script = found(cli, {}, "trainmaster", "_TRAINMASTER_COMPLETE")
    # Not `source()`: it starts bash to look at its version, which is the one that will run the script anyhow.
    click.echo(script.source_template % script.source_vars())
