"""The commands of the laptop cluster as users see them, as in `moorage.cli.commands`."""
